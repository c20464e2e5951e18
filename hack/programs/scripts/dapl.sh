# Runs dapltest with one interface, which has an address: dapl.sh ADDRESS TEST WORDS...
set -e
address=$1 test=$2
shift 2
export DAT_OVERRIDE="$PWD/dat.$address.conf"
echo "card u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"$address 0\" \"\"" >"$DAT_OVERRIDE"
exec dapltest -T "$test" -D card "$@"
