// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
)

var ucxPackages = []string{"ucx-utils", "libucx0", "libgomp1", "libnuma1", "libbinutils"}

// ucxCases returns the cases with UCX's protocols over its verbs transports. UCX looks for devices in /dev/infiniband,
// which --sysfs provides. It establishes connections with datagrams.
func ucxCases() []testCase {
	port := 18900
	line := func(transports, test string) string {
		return fmt.Sprintf("../roced exec --sysfs --libraries ../clib -- env UCX_TLS=%s,self UCX_WARN_UNUSED_ENV_VARS=n ucx_perftest -p %d -n 1000 -w 10 -t %s", transports, port, test)
	}
	list := []testCase{{from: ucxPackages, client: "../roced exec --sysfs --libraries ../clib -- ucx_info -d", want: `Transport: rc_verbs(.|\n)*Transport: ud_verbs`}}
	for i, row := range []struct{ transports, test string }{
		{"rc_verbs,ud_verbs", "tag_lat -s 8192"},
		{"ud_verbs", "tag_bw -s 8192"},
		{"rc_verbs,ud_verbs", "tag_bw -s 1048576"},
		{"rc_verbs,ud_verbs", "stream_bw -s 65536"},
		{"rc_verbs,ud_verbs", "ucp_put_bw -s 65536"},
		{"rc_verbs,ud_verbs", "ucp_get -s 65536"},
		{"rc_verbs,ud_verbs", "ucp_fadd -s 8"},
		{"rc_verbs,ud_verbs", "ucp_cswap -s 8"},
		{"ud_verbs", "stream_lat -s 64"},
	} {
		port++
		server := line(row.transports, row.test)
		list = append(list, testCase{from: ucxPackages, server: server, client: server + " @", want: `Final: +1000`, long: i > 1, alien: "roced exec does not run at Soft-RoCE's end"})
	}
	return list
}

var mpiPackages = []string{
	"openmpi-bin", "openmpi-common", "libopenmpi3", "libpmix2", "libevent-core-2.1-7", "libevent-pthreads-2.1-7", "libhwloc15", "libmunge2", "libltdl7", "python3-mpi4py",
}

var mpichPackages = []string{"mpich", "libmpich12", "netpipe-mpich2", "libslurm38", "libmunge2", "libhwloc15"}

// mpiCases returns the cases with Open MPI and MPICH over UCX.
func mpiCases() (list []testCase) {
	for _, ranks := range []string{"2", "4"} {
		list = append(list, testCase{from: slices.Concat(mpiPackages, ucxPackages), client: "sh ../scripts/mpi.sh " + ranks, want: "all of " + ranks + " ranks agree", long: true})
	}
	return append(list, testCase{from: slices.Concat(mpichPackages, ucxPackages), client: "sh ../scripts/mpich.sh NPmpich2 -i -u 8192", want: "6145 bytes .* Integrity check passed", long: true})
}
