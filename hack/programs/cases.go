// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// allCases returns the cases of all programs.
func allCases() []testCase {
	return slices.Concat(verbsCases(), managerCases(), socketCases(), perftestCases(), qperfCases(), fioCases(), ucxCases(), mpiCases(), iscsiCases(), qemuCases(), fabricCases(), daplCases(), pyverbsCases())
}

// noXRC is the reason why cases do not run with Soft-RoCE.
const noXRC = "Soft-RoCE has no XRC"

// verbsCases returns the cases with programs of ibverbs-utils.
func verbsCases() (list []testCase) {
	list = []testCase{
		{client: "ibv_devices", want: `(?m)^\s+(loop|eth0)\s+[0-9a-f]{16}`},
		{client: "ibv_devinfo", want: `state:\s+PORT_ACTIVE`},
		{client: "ibv_devinfo -v", want: `GID\[\s*0\]`},
	}
	for _, line := range []string{
		"ibv_rc_pingpong", "ibv_rc_pingpong -e", "ibv_rc_pingpong -c", "ibv_rc_pingpong -t", "ibv_rc_pingpong -N", "ibv_rc_pingpong -s 1000000 -n 100", "ibv_rc_pingpong -m 256",
		"ibv_uc_pingpong", "ibv_uc_pingpong -e", "ibv_ud_pingpong", "ibv_ud_pingpong -e", "ibv_srq_pingpong", "ibv_srq_pingpong -e",
	} {
		list = append(list, testCase{server: line + " -g GIDINDEX", client: line + " -g GIDINDEX" + " @", want: `iters in`})
		if strings.HasSuffix(line, " -t") {
			list[len(list)-1].alien = "Soft-RoCE has no timestamps of completions"
		}
	}
	for _, line := range []string{"ibv_xsrq_pingpong -g GIDINDEX", "ibv_xsrq_pingpong -e -g GIDINDEX"} {
		list = append(list, testCase{server: line, client: line + " @", want: `success`, alien: noXRC})
	}
	return list
}

// managerCases returns the cases with programs of rdmacm-utils.
func managerCases() []testCase {
	const s, c = " -s SERVER", " -s SERVER -b CLIENT"
	return []testCase{
		{server: "rping -s -a SERVER -C 10 -V", client: "rping -c -a SERVER -C 10 -V -v", want: `ping data`},
		{server: "rping -s -a SERVER6 -C 10 -V", client: "rping -c -a SERVER6 -C 10 -V"},
		{server: "ucmatose -b SERVER", client: "ucmatose" + c, want: `return status 0`},
		{server: "ucmatose -b SERVER -c 10 -C 20", client: "ucmatose" + c + " -c 10 -C 20", want: `return status 0`},
		{server: "udaddy -b SERVER", client: "udaddy" + c, want: `return status 0`},
		{server: "mckey -m 239.1.1.7 -b SERVER", client: "mckey -m 239.1.1.7 -b CLIENT -s", want: `return status 0`, group: true},
		{server: "cmtime -b SERVER -c 50", client: "cmtime" + c + " -c 50", ends: true},
		{server: "rdma_server", client: "rdma_client" + s, want: `end 0`},
		{server: "rdma_xserver -c r", client: "rdma_xclient -c r" + s, want: `end 0`},
		{server: "rdma_xserver -c x", client: "rdma_xclient -c x" + s, want: `end 0`, alien: noXRC},
	}
}

// socketCases returns the cases with programs of rdmacm-utils that use rsockets.
func socketCases() (list []testCase) {
	add := func(line string, c testCase) {
		c.server, c.client = line+" -b SERVER", line+" -s SERVER"
		c.want = `(?m)^\S+ +\S+ +\S+ .*\d\d`
		list = append(list, c)
	}
	for _, line := range []string{
		"rstream -S 4096 -C 200", "rstream -S 65536 -C 200 -T b", "rstream -S 4096 -C 200 -T a", "rstream -S 1000 -C 200 -T n -T v",
		"rstream -S 1000 -C 200 -T r", "riostream -S 4096 -C 200", "riostream -S 65536 -C 100 -T b", "riostream -S 4096 -C 200 -T v",
	} {
		add(line, testCase{})
	}
	for _, line := range []string{
		"rstream", "rstream -T b", "rstream -S 65536 -C 300 -T a -T v", "rstream -S 4096 -C 200 -k 1", "rstream -S 4096 -C 200 -i 0", "rstream -S 65536 -C 200 -B 8192",
		"riostream", "riostream -S 65536 -C 300 -T a", "riostream -T b -T v",
	} {
		add(line, testCase{long: true})
	}
	for _, line := range []string{"udpong -S 1000 -C 500", "udpong -S 1000 -C 500 -T e", "udpong -S 64 -C 500 -T a", "udpong -S 1500 -C 200 -T b -T e"} {
		add(line, testCase{ends: true})
	}
	list = append(list,
		testCase{server: "udpong -b SERVER6", client: "udpong -s SERVER6 -S 1000 -C 200 -T e", want: `custom`, ends: true},
		testCase{server: "rcopy", client: "rcopy ../clib/librdmacm.so.1 SERVER:copied", want: `bytes`, ends: true,
			alienServer: "rcopy maps the file that it writes, which 9p does not support"},
	)
	list = append(list, tcpCases()...)
	for i := range list {
		switch {
		case strings.HasPrefix(list[i].server, "udpong"):
			list[i].alien = "librdmacm's datagram sockets create an address handle without a GRH, which RoCE devices do not support"
		case list[i].long:
			list[i].alien = "it makes about 100,000 round trips, which take minutes with an emulated processor"
		}
	}
	return list
}

// tcpCases returns the cases with TCP programs, which do not use RDMA themselves.
func tcpCases() []testCase {
	const silent = "iperf3's server stops responding over Linux's librdmacm, also with Linux's client"
	return []testCase{
		{server: "iperf3 -s -1 -B SERVER", client: "iperf3 -c SERVER -n 20M", want: `receiver`, tcp: true, alienServer: silent},
		{server: "iperf3 -s -1 -B SERVER6", client: "iperf3 -c SERVER6 -n 20M -R -P 2", want: `receiver`, tcp: true, alienServer: silent},
		{server: "openssl s_server -WWW -accept SERVER:18443", client: "curl -sSkf -o /dev/null -w %{size_download} https://SERVER:18443/page", want: `^\d{8}$`, ends: true, tcp: true, alien: "the virtual machine has neither program"},
	}
}

// perftestCases returns the cases with programs of perftest and their usual options.
func perftestCases() (list []testCase) {
	port := 18600
	add := func(line string, long bool) {
		port++
		line = fmt.Sprintf("%s -p %d", line, port)
		if strings.HasPrefix(line, "ib_read") || strings.HasPrefix(line, "ib_atomic") {
			line += " -o 16" // perftest assumes that both ends have the same default; Soft-RoCE has 128
		}
		c := testCase{server: line, client: line + " @", want: `(?s)#bytes.*\n\s*\d+\s+\d+`, long: long}
		c.memory = strings.Contains(line, "_bw") && (strings.Contains(line, "-c UC") || strings.Contains(line, "-c UD"))
		if strings.Contains(line, "-c XRC") {
			c.alien = noXRC
		}
		if strings.Contains(line, " -R") {
			// -R uses rdma_cm, which requires an address for RDMA. The server listens twice, and the client does not
			// wait for the second time.
			c.client, c.tries = line+" SERVER", 5
		}
		list = append(list, c)
	}
	for _, program := range []string{"ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_atomic_bw", "ib_send_lat", "ib_write_lat", "ib_read_lat", "ib_atomic_lat"} {
		add(program+" -n 1000", false)
		add(program+" -n 200 -R", true)
	}
	for _, line := range []string{
		"ib_send_bw -a -n 100", "ib_write_bw -a -n 100", "ib_read_bw -a -n 100", "ib_send_bw -b -n 500", "ib_write_bw -b -n 500", "ib_read_bw -b -n 500",
		"ib_send_bw -q 4 -n 200", "ib_write_bw -q 4 -n 200", "ib_send_bw -e -n 500", "ib_send_lat -e -n 500", "ib_send_bw -c UD -s 1024 -n 1000", "ib_send_lat -c UD -s 64 -n 1000",
		"ib_send_bw -c UC -n 500", "ib_write_bw -c UC -n 500", "ib_send_lat -c UC -n 500", "ib_write_lat -c UC -n 500", "ib_send_bw -I 128 -s 64 -n 500", "ib_send_lat -I 128 -s 64 -n 500",
		"ib_send_bw -r 64 -n 500", "ib_send_bw -m 1024 -n 500", "ib_send_bw -D 1", "ib_write_bw -D 1", "ib_send_bw --use-srq -n 200", "ib_send_bw -x GIDINDEX -n 200",
		"ib_atomic_bw -A CMP_AND_SWAP -n 500", "ib_send_bw -c XRC -n 200", "ib_write_bw -c XRC -n 200",
	} {
		add(line, true)
	}
	return list
}

// qperfCases returns the cases with qperf's tests that support Ethernet, which use rdma_cm.
func qperfCases() (list []testCase) {
	for _, test := range []string{
		"rc_lat", "rc_bw", "rc_bi_bw", "rc_rdma_read_lat", "rc_rdma_read_bw", "rc_rdma_write_lat", "rc_rdma_write_bw",
		"rc_rdma_write_poll_lat", "rc_compare_swap_mr", "rc_fetch_add_mr", "ver_rc_compare_swap", "ver_rc_fetch_add",
	} {
		list = append(list, testCase{server: "qperf -lp 18700", client: "qperf @ -lp 18700 -cm 1 -t 1 " + test, want: `=`, ends: true, long: true, wire: true})
	}
	return list
}
