# Runs ranks of Open MPI over UCX's verbs transports only: mpi.sh NUMBER. The variables set the folder of the unpacked
# Open MPI.
set -e
usr=$(cd ../root/usr && pwd)
lib=$(dirname "$(echo "$usr"/lib/*/libopen-rte.so.40)")
export OPAL_PREFIX="$usr" PMIX_INSTALL_PREFIX="$usr" OMPI_MCA_mca_base_component_path="$lib/openmpi/lib/openmpi3"
export OMPI_MCA_mca_base_component_show_load_errors=0 PMIX_MCA_gds=hash PMIX_MCA_pcompress= PATH="$usr/bin:$PATH"
export PYTHONPATH="$usr/lib/python3/dist-packages" PYTHONDONTWRITEBYTECODE=1
export UCX_TLS=rc_verbs,ud_verbs,self UCX_WARN_UNUSED_ENV_VARS=n
exec ../roced exec --sysfs --libraries ../clib -- mpirun.openmpi --oversubscribe -np "$1" --mca plm isolated \
	--mca pml ucx --mca osc ucx --mca btl self /usr/bin/python3 ../scripts/mpi.py
