#!/usr/bin/env bash
# A sweep on Slurm:  sbatch examples/cluster/slurm.sh
# Submit it where the nodes share the disk, with pixelpong[ray] installed in .venv there.
#SBATCH --job-name=pixelpong
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=01:00:00
set -euo pipefail

head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
address=$(getent ahostsv4 "$head" | awk 'NR == 1 {print $1}'):6379

# On each node this starts Ray, and on the first one the command, once all have joined.
srun .venv/bin/ray symmetric-run --address "$address" --min-nodes "$SLURM_JOB_NUM_NODES" \
  --num-cpus "$SLURM_CPUS_PER_TASK" --disable-usage-stats -- \
  .venv/bin/pixelpong sweep --seeds 0-63 --ray-address "$address" --out sweeps/seeds
