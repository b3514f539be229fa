# Draws dev-bleu.svg: gnuplot THIS_FILE
reset
set encoding utf8
set terminal svg noenhanced size 658,279 font 'Helvetica,11.33' background rgb 'white'
set output 'dev-bleu.svg'
set key off
set border 3 lw 0.8 lc rgb '#606060'
set tics nomirror out scale 0.4 textcolor rgb 'black'
set grid lw 0.6 lt 1 lc rgb '#e4e4e4'
$band_0_0 << EOD
5000 -1 1.5
10000 4 6.5
15000 5.66666667 8.16666667
20000 6.5 9
25000 7 9.5
30000 7.33333333 9.83333333
35000 7.57142857 10.0714286
40000 7.75 10.25
45000 7.88888889 10.3888889
50000 8 10.5
55000 8.09090909 10.5909091
60000 8.16666667 10.6666667
65000 8.23076923 10.7307692
70000 8.28571429 10.7857143
75000 8.33333333 10.8333333
80000 8.375 10.875
85000 8.41176471 10.9117647
90000 8.44444444 10.9444444
95000 8.47368421 10.9736842
100000 8.5 11
EOD
$line_0_0 << EOD
5000 0
10000 5
15000 6.66666667
20000 7.5
25000 8
30000 8.33333333
35000 8.57142857
40000 8.75
45000 8.88888889
50000 9
55000 9.09090909
60000 9.16666667
65000 9.23076923
70000 9.28571429
75000 9.33333333
80000 9.375
85000 9.41176471
90000 9.44444444
95000 9.47368421
100000 9.5
EOD
$marks_0_0 << EOD
5000 0
20000 7.5
30000 8.33333333
45000 8.88888889
55000 9.09090909
65000 9.23076923
80000 9.375
90000 9.44444444
EOD
$line_0_1 << EOD
5000 0.5
10000 5.5
15000 7.16666667
20000 8
25000 8.5
30000 8.83333333
35000 9.07142857
40000 9.25

50000 9.5
55000 9.59090909
60000 9.66666667
65000 9.73076923
70000 9.78571429
75000 9.83333333
80000 9.875
85000 9.91176471
90000 9.94444444
95000 9.97368421
100000 10
EOD
$marks_0_1 << EOD
10000 5.5
25000 8.5
35000 9.07142857
50000 9.5
60000 9.66666667
70000 9.78571429
80000 9.875
95000 9.97368421
EOD
$diverged_0_1 << EOD
30000 12
40000 17.2
EOD
$line_0_2 << EOD
20000 9
80000 16.5
EOD
$marks_0_2 << EOD
20000 9
80000 16.5
EOD
$band_1_0 << EOD
5000 -1 1.5
10000 9 11.5
15000 12.3333333 14.8333333
20000 14 16.5
25000 15 17.5
30000 15.6666667 18.1666667
35000 16.1428571 18.6428571
40000 16.5 19
45000 16.7777778 19.2777778
50000 17 19.5
55000 17.1818182 19.6818182
60000 17.3333333 19.8333333
65000 17.4615385 19.9615385
70000 17.5714286 20.0714286
75000 17.6666667 20.1666667
80000 17.75 20.25
85000 17.8235294 20.3235294
90000 17.8888889 20.3888889
95000 17.9473684 20.4473684
100000 18 20.5
EOD
$line_1_0 << EOD
5000 0
10000 10
15000 13.3333333
20000 15
25000 16
30000 16.6666667
35000 17.1428571
40000 17.5
45000 17.7777778
50000 18
55000 18.1818182
60000 18.3333333
65000 18.4615385
70000 18.5714286
75000 18.6666667
80000 18.75
85000 18.8235294
90000 18.8888889
95000 18.9473684
100000 19
EOD
$marks_1_0 << EOD
5000 0
20000 15
30000 16.6666667
45000 17.7777778
55000 18.1818182
65000 18.4615385
80000 18.75
90000 18.8888889
EOD
$line_1_1 << EOD
5000 0.5
10000 10.5
15000 13.8333333
20000 15.5
25000 16.5
30000 17.1666667
35000 17.6428571
40000 18

50000 18.5
55000 18.6818182
60000 18.8333333
65000 18.9615385
70000 19.0714286
75000 19.1666667
80000 19.25
85000 19.3235294
90000 19.3888889
95000 19.4473684
100000 19.5
EOD
$marks_1_1 << EOD
10000 10.5
25000 16.5
35000 17.6428571
50000 18.5
60000 18.8333333
70000 19.0714286
80000 19.25
95000 19.4473684
EOD
$diverged_1_1 << EOD
30000 12
40000 21.36
EOD
$line_1_2 << EOD
20000 9
80000 16.5
EOD
$marks_1_2 << EOD
20000 9
80000 16.5
EOD
set multiplot

# panel 1
set lmargin at screen 0.07199; set rmargin at screen 0.46801; set bmargin at screen 0.33617; set tmargin at screen 0.84966
unset logscale x
set xrange [0:104000]
set xtics ('' 0, '' 20000, '' 40000, '' 60000, '' 80000, '' 100000)
unset logscale y
set yrange [-1.7:17.2]
set ytics ('' 0, '' 5, '' 10, '' 15)
set arrow from graph 0, first 8 to graph 1, first 8 nohead back lw 1.2 dt (4,4) lc rgb '#606060'
plot $band_0_0 using 1:2:3 with filledcurves lc rgb '#0072B2' fs transparent solid 0.15 noborder, \
     $line_0_0 with lines lw 1.4 lc rgb '#0072B2' dt solid, \
     $marks_0_0 with points pt 7 ps 0.55 lw 0.9 lc rgb '#0072B2', \
     $line_0_1 with lines lw 1.4 lc rgb '#D55E00' dt solid, \
     $marks_0_1 with points pt 5 ps 0.55 lw 0.9 lc rgb '#D55E00', \
     $line_0_2 with lines lw 1.4 lc rgb '#009E73' dt (6,4), \
     $marks_0_2 with points pt 8 ps 0.55 lw 0.9 lc rgb '#009E73', \
     $diverged_0_1 with points pt 2 ps 0.9 lw 2 lc rgb '#D55E00'
unset arrow
unset label

# panel 2
set lmargin at screen 0.56050; set rmargin at screen 0.95652; set bmargin at screen 0.33617; set tmargin at screen 0.84966
unset logscale x
set xrange [0:104000]
set xtics ('' 0, '' 20000, '' 40000, '' 60000, '' 80000, '' 100000)
unset logscale y
set yrange [-1.86:21.36]
set ytics ('' 0, '' 5, '' 10, '' 15, '' 20)
set arrow from first 50000, graph 0 to first 50000, graph 1 nohead back lw 1.2 dt (4,4) lc rgb '#606060'
plot $band_1_0 using 1:2:3 with filledcurves lc rgb '#0072B2' fs transparent solid 0.15 noborder, \
     $line_1_0 with lines lw 1.4 lc rgb '#0072B2' dt solid, \
     $marks_1_0 with points pt 7 ps 0.55 lw 0.9 lc rgb '#0072B2', \
     $line_1_1 with lines lw 1.4 lc rgb '#D55E00' dt solid, \
     $marks_1_1 with points pt 5 ps 0.55 lw 0.9 lc rgb '#D55E00', \
     $line_1_2 with lines lw 1.4 lc rgb '#009E73' dt (6,4), \
     $marks_1_2 with points pt 8 ps 0.55 lw 0.9 lc rgb '#009E73', \
     $diverged_1_1 with points pt 2 ps 0.9 lw 2 lc rgb '#D55E00'
unset arrow
unset label

# texts and legend
set lmargin at screen 0.00000; set rmargin at screen 1.00000; set bmargin at screen 0.00000; set tmargin at screen 1.00000
unset logscale
unset tics
unset grid
unset border
set xrange [0:174]
set yrange [73.808:0]
set label 'Dev BLEU by update: 50 % of A & B_c' at 2.000, 4.024 left font ',11.33'
set label 'gl→en' at 46.981, 9.072 center font ',11.33'
set label '0' at 12.527, 52.520 center font ',11.33'
set label '20 000' at 25.778, 52.520 center font ',11.33'
set label '40 000' at 39.030, 52.520 center font ',11.33'
set label '60 000' at 52.281, 52.520 center font ',11.33'
set label '80 000' at 65.533, 52.520 center font ',11.33'
set label '100 000' at 78.784, 52.520 center font ',11.33'
set label '0' at 11.027, 45.587 right font ',11.33'
set label '5' at 11.027, 35.560 right font ',11.33'
set label '10' at 11.027, 25.534 right font ',11.33'
set label '15' at 11.027, 15.508 right font ',11.33'
set label 'dev BLEU' at 4.024, 30.046 center rotate by 90 font ',11.33'
set label 'updates' at 46.981, 56.568 center font ',11.33'
set label 'en_vi' at 131.981, 9.072 center font ',11.33'
set label '0' at 97.527, 52.520 center font ',11.33'
set label '20 000' at 110.778, 52.520 center font ',11.33'
set label '40 000' at 124.030, 52.520 center font ',11.33'
set label '60 000' at 137.281, 52.520 center font ',11.33'
set label '80 000' at 150.533, 52.520 center font ',11.33'
set label '100 000' at 163.784, 52.520 center font ',11.33'
set label '0' at 96.027, 45.960 right font ',11.33'
set label '5' at 96.027, 37.799 right font ',11.33'
set label '10' at 96.027, 29.638 right font ',11.33'
set label '15' at 96.027, 21.477 right font ',11.33'
set label '20' at 96.027, 13.316 right font ',11.33'
set label 'dev BLEU' at 89.024, 30.046 center rotate by 90 font ',11.33'
set label 'updates' at 131.981, 56.568 center font ',11.33'
set label 'ScaleNorm, depth = 2' at 12.500, 62.116 left font ',11.33'
set label 'layer_norm, depth = 4' at 69.167, 62.116 left font ',11.33'
set label 'Paper: 100 %' at 125.833, 62.116 left font ',11.33'
set label 'Lines: the mean of 3 seeds; bands: their standard deviation.' at 2.000, 66.807 left font ',9.333'
set label '×: 2 runs diverged, in no mean.' at 2.000, 70.141 left font ',9.333'
$legend_0 << EOD
2.000 62.116
6.500 62.116
11.000 62.116
EOD
$legend_1 << EOD
58.667 62.116
63.167 62.116
67.667 62.116
EOD
$legend_2 << EOD
115.333 62.116
119.833 62.116
124.333 62.116
EOD
plot $legend_0 with lines lw 1.4 lc rgb '#0072B2' dt solid, \
     $legend_0 every ::1::1 with points pt 7 ps 0.55 lw 0.9 lc rgb '#0072B2', \
     $legend_1 with lines lw 1.4 lc rgb '#D55E00' dt solid, \
     $legend_1 every ::1::1 with points pt 5 ps 0.55 lw 0.9 lc rgb '#D55E00', \
     $legend_2 with lines lw 1.4 lc rgb '#009E73' dt (6,4), \
     $legend_2 every ::1::1 with points pt 8 ps 0.55 lw 0.9 lc rgb '#009E73'
unset multiplot
unset output
