// SPDX-License-Identifier: Apache-2.0

package main

var fabricPackages = []string{"libfabric-bin", "libfabric1", "libpsm-infinipath1", "libpsm2-2", "libnuma1", "libatomic1"}

// fabricCases returns the cases with libfabric's fi_pingpong over the provider verbs, which requires an interface with
// the device's address. A server for connections sends the address 127.0.0.1 to its client, so both run on one host.
func fabricCases() (list []testCase) {
	for _, words := range []string{"-p verbs -e dgram", "-p verbs;ofi_rxd -e rdm"} {
		line := "sh ../scripts/fabric.sh " + words
		list = append(list, testCase{from: fabricPackages, server: line, client: line + " @"})
	}
	for _, words := range []string{"-p verbs -e msg", "-p verbs;ofi_rxm -e rdm"} {
		list = append(list, testCase{from: fabricPackages, client: "sh ../scripts/fabric.sh both " + words})
	}
	for i := range list {
		list[i].want, list[i].wire, list[i].long = `(?m)^1k .*\d$`, true, i > 0
		list[i].alien = "the virtual machine lacks libraries of libfabric"
	}
	return list
}

var daplPackages = []string{"dapl2-utils", "libdapl2"}

// daplCases returns the cases with dapltest, whose server runs until it is stopped.
func daplCases() (list []testCase) {
	for i, words := range []string{
		"T -s SERVER -i 100 -t 2 -w 2 -V client SR 256 server RW 4096 server RR 4096 server SR 256",
		"T -s SERVER -i 100 -r -P client SR 1024 3 server SR 65536",
		"P -s SERVER -i 1000 RW 4096 2",
		"P -s SERVER -i 1000 -m p RR 65536",
	} {
		list = append(list, testCase{
			from: daplPackages, server: "sh ../scripts/dapl.sh SERVER S", client: "sh ../scripts/dapl.sh CLIENT " + words, ends: true, tries: 5, long: i > 0,
			want: `End of Work -- Client Exiting`, alien: "the virtual machine lacks libdapl",
		})
	}
	list = append(list, testCase{
		from: daplPackages, client: "sh ../scripts/dapl.sh CLIENT L -w 8 -m 100 limit_ia limit_pz limit_evd limit_ep limit_psp limit_lmr", want: `LMRs created: 100`, long: true,
	})
	return list
}
