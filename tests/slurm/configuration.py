"""What can be chosen about a cluster, and the slurm.conf that results."""

import dataclasses
import pathlib

NODES = ["n1", "n2", "n3"]
LOGIN = "login"  # runs slurmctld
MACHINES = [LOGIN, *NODES]
# All on the network's one device; addresses for documentation (RFC 5737). slurmd does not start with 127.0.0.1 alone.
ADDRESSES = {name: f"192.0.2.{index + 1}" for index, name in enumerate(MACHINES)}
RUN = "/run/cluster"  # the cluster's folder, as all its machines see it
GPU_FOLDER = "/run/fake-gpus"
GPUS_OF = {"n1": ["a", "a"], "n2": ["a", "a"], "n3": ["b"]}


def option(default, text):
    return dataclasses.field(default=default, metadata={"help": text})


@dataclasses.dataclass
class Options:
    warn_preempted: bool = option(False, "a job that is preempted gets the signal of its --signal (preempt_send_user_signal)")
    gpus: bool = option(False, "fake GPUs: two of type a on n1 and on n2, one of type b on n3")
    cpus: int = option(2, "of each node, whatever this machine has")
    memory: int = option(4000, "of each node, in MiB, whatever this machine has")
    kill_wait: int = option(3, "KillWait: seconds between SIGTERM and SIGKILL")
    min_job_age: int = option(15, "MinJobAge: seconds until an ended job is forgotten")
    slurmd_timeout: int = option(10, "SlurmdTimeout: seconds until a silent node is DOWN")
    grace_time: int = option(4, "GraceTime of the partition low: seconds between warning and end of a job that is preempted")
    over_time_limit: int = option(0, "OverTimeLimit, minutes")
    requeue_delay: int = option(10, "seconds until a requeued job may start again (Slurm's default is 120: cred_expire of AuthInfo)")
    max_array_size: int = option(1001, "MaxArraySize")
    max_job_count: int = option(10000, "MaxJobCount")
    no_requeue: bool = option(False, "JobRequeue=0: only jobs with --requeue are requeued")
    extra: str = option("", "further lines of slurm.conf, which come last")


def slurm_conf(options):
    parameters = ["preempt_send_user_signal"] if options.warn_preempted else []
    lines = f"""\
ClusterName=test
SlurmctldHost={LOGIN}({ADDRESSES[LOGIN]})
SlurmctldPort=6817
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=cred_expire={options.requeue_delay}
StateSaveLocation={RUN}/state
SlurmdSpoolDir=/run/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile={RUN}/log/slurmctld.log
SlurmdLogFile={RUN}/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/filetxt
JobCompLoc={RUN}/log/jobcomp.txt
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=1
SlurmdParameters=config_overrides
SlurmdTimeout={options.slurmd_timeout}
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue={int(not options.no_requeue)}
ReturnToService=2
KillWait={options.kill_wait}
MinJobAge={options.min_job_age}
OverTimeLimit={options.over_time_limit}
MaxArraySize={options.max_array_size}
MaxJobCount={options.max_job_count}
""".splitlines()
    if parameters:
        lines.append(f"SlurmctldParameters={','.join(parameters)}")
    if options.gpus:
        lines.append("GresTypes=gpu")
    for index, node in enumerate(NODES):
        types = GPUS_OF[node]
        gres = f" Gres=gpu:{types[0]}:{len(types)}" if options.gpus else ""
        lines.append(f"NodeName={node} NodeHostname={node} NodeAddr={ADDRESSES[node]} Port={6818 + index} CPUs={options.cpus} "
                     f"RealMemory={options.memory}{gres} State=UNKNOWN")
    nodes = ",".join(NODES)
    lines.append(f"PartitionName=low Nodes={nodes} Default=YES MaxTime=60 State=UP PriorityTier=1 PreemptMode=REQUEUE "
                 f"GraceTime={options.grace_time}")
    lines.append(f"PartitionName=high Nodes={nodes} MaxTime=60 State=UP PriorityTier=10 PreemptMode=OFF")
    return "\n".join([*lines, options.extra]) + "\n"


def gres_conf(options):
    if not options.gpus:
        return ""
    return "".join(f"NodeName={node} Name=gpu Type={types[0]} File={GPU_FOLDER}/gpu{'[0-1]' if len(types) == 2 else 0}\n"
                   for node, types in GPUS_OF.items())


def write(folder, options):
    folder = pathlib.Path(folder)
    folder.mkdir()
    (folder / "slurm.conf").write_text(slurm_conf(options))
    (folder / "gres.conf").write_text(gres_conf(options))
