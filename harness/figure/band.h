// What several runs are together. A new kind of band is a row of kBands in band.cc.
#pragma once

#include <string>
#include <vector>

#include "harness/figure/figure.h"

namespace tearless::harness {

/// The mean of several runs, and its band, at each x at which one of them has a point. Between two of its own points a
/// run counts with the value on the straight line between these, where `joins`; before its first and after its last,
/// and beside a value that is not finite, it does not count. REQUIRES: curves in order.
std::vector<BandPoint> band_of(const std::vector<Curve>& runs, FigureSpec::Band band, bool joins = true);

/// "the mean ± the standard deviation", for a note; "" without a band.
std::string text_of(FigureSpec::Band band);

/// Each y becomes the mean of `count` points, those before and after it; at the ends, of those that are there.
Curve smoothed(const Curve& curve, int count);

/// The mean y of the points in each of `bins` equal parts of the x axis from `low` to `high`, at the middle of the
/// part. Parts without points have none, and those without a finite one NaN. With `log_x` the parts are equal by their
/// logarithms.
Curve binned(const Curve& curve, int bins, double low, double high, bool log_x);

}  // namespace tearless::harness
