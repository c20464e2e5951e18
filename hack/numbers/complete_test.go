// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// lists returns a file's lines, except comments, split at spaces into at most n fields.
func lists(t *testing.T, name string, n int) (lines [][]string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		lines = append(lines, strings.SplitN(strings.TrimSpace(line), " ", n))
	}
	return lines
}

func table(t *testing.T) []kind {
	t.Helper()
	text, err := os.ReadFile("../../verbs/ib/numbers.txt")
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

// TestListsAreComplete: the table has every number of libibverbs' enumerations. A line of testdata/libibverbs.txt is
// the enumeration and its numbers (infiniband/verbs.h of rdma-core 44); without IBV_QPS_UNKNOWN and
// IBV_REREG_MR_FLAGS_SUPPORTED, which are no state and no flag.
func TestListsAreComplete(t *testing.T) {
	here := map[string]bool{}
	for _, k := range table(t) {
		for i := range k.numbers {
			n := &k.numbers[i]
			_, theirs := k.c(n)
			here[theirs] = true
			if k.theirs != "-" && k.theirs != "" { // one that not all versions have
				here[k.theirs+n.c] = true
			}
			here[compact(n.name)] = true // of the two types that C does not have
		}
	}
	for _, line := range lists(t, "testdata/libibverbs.txt", -1) {
		for _, name := range line[1:] {
			if !here[name] && !here[compact(name)] {
				t.Errorf("%s: %s is not in verbs/ib/numbers.txt", line[0], name)
			}
		}
	}
}

// compact is a name without what Go's and C's spellings differ in: WCExWithQPNum and IBV_WC_EX_WITH_QP_NUM.
func compact(name string) string {
	name = strings.TrimPrefix(strings.ReplaceAll(strings.ToUpper(name), "_", ""), "IBV")
	return strings.Replace(name, "CREATECQATTR", "CQ", 1)
}

// TestStringsAreTheirs: what prints is what ibv_event_type_str, ibv_port_state_str and ibv_wc_status_str give.
func TestStringsAreTheirs(t *testing.T) {
	kinds := table(t)
	for _, line := range lists(t, "testdata/strings.txt", 3) {
		enum := "roced_" + strings.TrimPrefix(line[0], "ibv_")
		at := slices.IndexFunc(kinds, func(k kind) bool { return k.enum == enum })
		if at < 0 {
			t.Fatalf("no %s", enum)
		}
		if !slices.ContainsFunc(kinds[at].numbers, func(n number) bool { return n.value == line[1] && n.text == line[2] }) {
			t.Errorf("%s %s does not print as %q", line[0], line[1], line[2])
		}
	}
}
