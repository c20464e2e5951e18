// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/roced/roced/internal/needs"
)

// structures holds the structures of ring.h, with the offset of each member in this package.
var structures = map[string]map[string]int{
	"roced_sge": {"addr": 0, "length": 8, "lkey": 12, "": SGELen},
	"roced_send_wqe": {
		"id": sendID, "opcode": sendOpcode, "flags": sendFlags, "sge_count": sendSGECount, "imm": sendImm, "ah": sendAH,
		"remote_qpn": sendRemoteQPN, "remote_qkey": sendQKey, "inline_length": sendInline, "": sendHeader,
	},
	"roced_rdma_wqe": {
		"id": sendID, "opcode": sendOpcode, "flags": sendFlags, "sge_count": sendSGECount, "imm": sendImm, "remote_addr": sendAH,
		"rkey": sendQKey, "inline_length": sendInline, "": sendHeader,
	},
	"roced_xrc_wqe":  {"rdma": 0, "remote_srqn": sendRemoteSRQN, "reserved": sendRemoteSRQN + 4, "": xrcHeader},
	"roced_atomic":   {"compare_add": 0, "swap": 8, "": AtomicLen},
	"roced_bind":     {"length": 0, "lkey": 8, "access": 12, "": BindLen},
	"roced_recv_wqe": {"id": recvID, "sge_count": recvSGECount, "reserved": 12, "": recvHeader},
	"roced_cqe": {
		"id": cqeID, "status": cqeStatus, "opcode": cqeStatus + 1, "flags": cqeStatus + 2, "byte_length": cqeByteLen, "imm": cqeImm, "qpn": cqeQPN,
		"source_qp": cqeSourceQP, "token": cqeToken, "vendor_error": cqeVendor, "pkey_index": cqePKeyIndex, "source_mac": cqeSMAC,
		"vlan": cqeSMACRest + 4, "network_header": cqeSMACRest + 6, "service_level": cqeSMACRest + 7, "port": cqePort, "reserved": cqePort + 1, "": cqeStride,
	},
	"roced_stamped_cqe": {"cqe": 0, "timestamp": cqeTimestamp, "wallclock": cqeWallclock, "reserved": cqeWallclock + 8, "": cqeStampedStride},
	"roced_doorbell":    {"asleep": 0, "ended": endedWord, "reserved": 8, "summary": summaryOffset, "bits": bitsOffset, "": DoorbellSize},
}

// layout holds the constants of ring.h that are not in libibverbs.
var layout = map[string]int{
	"ROCED_PRODUCER_WORDS": 0, "ROCED_CONSUMER_WORDS": consumerWords, "ROCED_SLOTS": slotsOffset,
	"ROCED_MAX_ENTRIES": MaxEntries, "ROCED_MAX_SGE": MaxSGE, "ROCED_MAX_INLINE": MaxInline, "ROCED_MAX_QUEUE_PAIRS": MaxQueuePairs,
	"ROCED_SEND_ERROR": sendErrorWord, "ROCED_RECV_FLUSH": recvFlushWord, "ROCED_CQ_ERROR": cqErrorWord, "ROCED_CQ_ARMED": cqArmedWord, "ROCED_CQ_THRESHOLD": cqThresholdWord,
	"ROCED_CQ_ARMED_NEXT": int(ArmedNext), "ROCED_CQ_ARMED_SOLICITED": int(ArmedSolicited), "ROCED_CQ_ARMED_COUNT": int(ArmedCount), "ROCED_CQ_ARMED_WAIT": int(ArmedWait),
	"ROCED_CQ_ARMED_FUTEX": int(ArmedFutex),
}

// header returns the text of ring.h, and the names of its enums.
func header(t *testing.T) (text string, names map[string][]string) {
	t.Helper()
	raw, err := os.ReadFile("ring.h")
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(string(raw), "")
	names = map[string][]string{}
	for _, enum := range regexp.MustCompile(`(?s)enum (\w*)\s*\{(.*?)\}`).FindAllStringSubmatch(text, -1) {
		for _, one := range regexp.MustCompile(`(ROCED_\w+)\s*=`).FindAllStringSubmatch(enum[2], -1) {
			names[enum[1]] = append(names[enum[1]], one[1])
		}
	}
	return text, names
}

// assertions returns static assertions for the compiler.
func assertions(t *testing.T) (all []string) {
	t.Helper()
	text, names := header(t)
	equal := func(c string, value int64) {
		all = append(all, fmt.Sprintf("_Static_assert((long)(%s) == %dL, %q);", c, value, c))
	}
	for name, members := range structures {
		for member, offset := range members {
			if member == "" {
				equal("sizeof(struct "+name+")", int64(offset))
			} else {
				equal("offsetof(struct "+name+", "+member+")", int64(offset))
			}
		}
	}
	if n := strings.Count(text, "\nstruct "); n != len(structures) {
		t.Errorf("ring.h has %d structures, want %d", n, len(structures))
	}
	for _, name := range names[""] {
		if _, ok := layout[name]; !ok {
			t.Errorf("%s of ring.h is not in the test's list", name)
		}
		equal(name, int64(layout[name]))
	}
	return all
}

// The sizes, offsets and numbers of the header match those of this package and, if libibverbs is installed, its
// numbers.
func TestHeader(t *testing.T) {
	needs.Tools(t, "cc", "/usr/include/stdio.h")
	source := "#include <stddef.h>\n#include \"ring.h\"\n" +
		"#if __has_include(<infiniband/verbs.h>)\n#include <infiniband/verbs.h>\n#include \"testdata/libibverbs.h\"\n#endif\n" +
		strings.Join(assertions(t), "\n") + "\n"
	compile(t, "cc", "c", "gnu11", source)
}

// Compilers in strict mode for older C standards, and for C++, accept the header too.
func TestHeaderIsStrict(t *testing.T) {
	for _, row := range []struct {
		compilers []string
		language  string
		standards []string
	}{
		{[]string{"cc", "gcc", "clang"}, "c", []string{"c89", "c99", "c11"}},
		{[]string{"c++", "g++", "clang++"}, "c++", []string{"c++98", "c++11"}},
	} {
		for _, compiler := range row.compilers {
			t.Run(compiler, func(t *testing.T) {
				needs.Tools(t, compiler, "/usr/include/stdio.h")
				for _, standard := range row.standards {
					compile(t, compiler, row.language, standard, "#include \"ring.h\"\n", "-pedantic")
				}
			})
		}
	}
}

// compile checks a source text that includes ring.h.
func compile(t *testing.T, compiler, language, standard, source string, flags ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "header."+language)
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	arguments := append([]string{"-x", language, "-std=" + standard, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I."}, flags...)
	output, err := needs.Command(t, compiler, append(arguments, file)...).CombinedOutput()
	if err != nil {
		t.Errorf("%s -std=%s: %v\n%s", compiler, standard, err, output)
	}
}
