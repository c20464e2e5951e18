// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

var fioPackages = []string{
	"fio", "libgfxdr0", "libglusterfs0", "libgfrpc0", "libgfapi0", "libnbd0", "libpmemblk1", "libboost-thread1.74.0",
	"libboost-iostreams1.74.0", "libfmt9", "librados2", "librbd1", "libnuma1", "libaio1", "libpmem1", "libdaxctl1", "libndctl6",
}

// fioCases returns the cases with fio's rdma engine: the client writes with one of three verbs. With --verify each
// block has a checksum, which the server checks. The receive queue for SENDs is large enough for all messages, since
// the engine does not allow RNR retries.
func fioCases() (list []testCase) {
	port := 18800
	for _, row := range []struct{ client, server string }{
		{"--verb=write --size=16m", "--size=16m --iodepth=16"},
		{"--verb=read --size=16m", "--size=16m --iodepth=16"},
		{"--verb=send --size=1m", "--size=1m --iodepth=256"},
		{"--verb=send --size=1m --verify=md5 --do_verify=0", "--size=1m --iodepth=256 --verify=md5"},
	} {
		port++
		line := fmt.Sprintf("fio --name=job --ioengine=rdma --port=%d --bs=4k --verify_state_save=0 ", port)
		list = append(list, testCase{
			from:   fioPackages,
			alien:  "the virtual machine lacks libraries of fio",
			server: line + "--rw=read " + row.server,
			client: line + "--rw=write --hostname=SERVER --iodepth=16 " + row.client,
			want:   `err= 0(.|\n)*WRITE: bw=`, long: port > 18802,
		})
	}
	return list
}
