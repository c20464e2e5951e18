# Runs two ranks of MPICH over UCX's verbs transports only, although both are on one host: mpich.sh PROGRAM...
set -e
export MPIR_CVAR_NOLOCAL=1 UCX_TLS=rc_verbs,ud_verbs,self UCX_WARN_UNUSED_ENV_VARS=n
exec ../roced exec --sysfs --libraries ../clib -- mpiexec.hydra -iface lo -n 2 "$@"
