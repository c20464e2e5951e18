// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ctest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roced/roced/internal/needs"
)

// cmStructures are librdmacm's, each with its fields.
var cmStructures = map[string]string{
	"struct rdma_event_channel": "fd",
	"struct rdma_cm_id": "verbs channel context qp route ps port_num event send_cq_channel send_cq recv_cq_channel " +
		"recv_cq srq pd qp_type",
	"struct rdma_route":      "addr path_rec num_paths",
	"struct rdma_addr":       "src_addr src_sin src_sin6 src_storage dst_addr dst_sin dst_sin6 dst_storage addr.ibaddr",
	"struct rdma_ib_addr":    "sgid dgid pkey",
	"struct rdma_conn_param": "private_data private_data_len responder_resources initiator_depth flow_control retry_count rnr_retry_count srq qp_num",
	"struct rdma_ud_param":   "private_data private_data_len ah_attr qp_num qkey",
	"struct rdma_cm_event":   "id listen_id event status param param.conn param.ud",
	"struct rdma_addrinfo": "ai_flags ai_family ai_qp_type ai_port_space ai_src_len ai_dst_len ai_src_addr ai_dst_addr " +
		"ai_src_canonname ai_dst_canonname ai_route_len ai_route ai_connect_len ai_connect ai_next",
	"struct rdma_cm_join_mc_attr_ex": "comp_mask join_flags addr",
	"struct ibv_path_data":           "flags reserved path",
	"struct ibv_path_record": "service_id dgid sgid dlid slid flowlabel_hoplimit tclass reversible_numpath pkey qosclass_sl " +
		"mtu rate packetlifetime preference reserved",
	"struct ibv_sa_path_rec": "dgid sgid dlid slid raw_traffic flow_label hop_limit traffic_class reversible numb_path pkey sl " +
		"mtu_selector mtu rate_selector rate packet_life_time_selector packet_life_time preference",
}

// cmNumbers are librdmacm's.
const cmNumbers = `RDMA_CM_EVENT_ADDR_RESOLVED RDMA_CM_EVENT_ADDR_ERROR RDMA_CM_EVENT_ROUTE_RESOLVED RDMA_CM_EVENT_ROUTE_ERROR
	RDMA_CM_EVENT_CONNECT_REQUEST RDMA_CM_EVENT_CONNECT_RESPONSE RDMA_CM_EVENT_CONNECT_ERROR RDMA_CM_EVENT_UNREACHABLE
	RDMA_CM_EVENT_REJECTED RDMA_CM_EVENT_ESTABLISHED RDMA_CM_EVENT_DISCONNECTED RDMA_CM_EVENT_DEVICE_REMOVAL
	RDMA_CM_EVENT_MULTICAST_JOIN RDMA_CM_EVENT_MULTICAST_ERROR RDMA_CM_EVENT_ADDR_CHANGE RDMA_CM_EVENT_TIMEWAIT_EXIT
	RDMA_PS_IPOIB RDMA_PS_TCP RDMA_PS_UDP RDMA_PS_IB RDMA_MAX_RESP_RES RDMA_MAX_INIT_DEPTH RDMA_OPTION_ID RDMA_OPTION_IB
	RDMA_OPTION_ID_TOS RDMA_OPTION_ID_REUSEADDR RDMA_OPTION_ID_AFONLY RDMA_OPTION_ID_ACK_TIMEOUT RDMA_OPTION_IB_PATH
	RAI_PASSIVE RAI_NUMERICHOST RAI_NOROUTE RAI_FAMILY RDMA_CM_JOIN_MC_ATTR_ADDRESS RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS
	RDMA_CM_JOIN_MC_ATTR_RESERVED RDMA_MC_JOIN_FLAG_FULLMEMBER RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER RDMA_MC_JOIN_FLAG_RESERVED`

// TestCMLayout: the structures and numbers of librdmacm are those of Debian's headers.
func TestCMLayout(t *testing.T) {
	t.Parallel()
	needs.Tools(t, append(compiler, "/usr/include/rdma/rdma_verbs.h")...)
	ours, debian := cmLayout(t, `"`+cmFile(t, "cm/abi.h")+`"`), cmLayout(t, "<rdma/rdma_cma.h>")
	for n, line := range strings.Split(debian, "\n") {
		if got := strings.Split(ours, "\n")[n]; got != line {
			t.Errorf("%s, and Debian has %s", got, line)
		}
	}
}

// cmLayout compiles a program that prints all sizes, offsets and numbers of a header.
func cmLayout(t *testing.T, header string) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "#include <stddef.h>\n#include <stdio.h>\n#include %s\nint main(void)\n{\n", header)
	for name, fields := range cmStructures {
		fmt.Fprintf(&b, "printf(\"%s: %%zu\\n\", sizeof(%s));\n", name, name)
		for _, f := range strings.Fields(fields) {
			fmt.Fprintf(&b, "printf(\"%s.%s: %%zu, %%zu bytes\\n\", offsetof(%s, %s), sizeof(((%s *)0)->%s));\n", name, f, name, f, name, f)
		}
	}
	for _, name := range strings.Fields(cmNumbers) {
		fmt.Fprintf(&b, "printf(\"%s: %%d\\n\", (int)%s);\n", name, name)
	}
	b.WriteString("return 0;\n}\n")
	lines := strings.Split(cmRunC(t, b.String()), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// cmRunC compiles a program that needs no library, and returns its output.
func cmRunC(t *testing.T, source string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program.c")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := needs.Command(t, "gcc", "-std=gnu11", "-o", file+".out", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.Command(file + ".out").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// cmFile is the path of a file of verbs/c.
func cmFile(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCMVersions: each name and version that Debian's library exports is in the map, and what 1.4 adds.
func TestCMVersions(t *testing.T) {
	t.Parallel()
	needs.Tools(t, "objdump", "/lib/*/librdmacm.so.1")
	installed, err := filepath.Glob("/lib/*/librdmacm.so.1")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(cmFile(t, "cm/librdmacm.map"))
	if err != nil {
		t.Fatal(err)
	}
	exported := cmMap(string(text))
	out, err := needs.Command(t, "objdump", "-T", installed[0]).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(out), "\n") {
		f := strings.Fields(line)
		if len(f) < 3 || !strings.HasPrefix(f[len(f)-2], "RDMACM_") || f[len(f)-2] == f[len(f)-1] {
			continue
		}
		if name, version := f[len(f)-1], f[len(f)-2]; exported[name] != version {
			t.Errorf("%s is at version %q, and Debian has %s", name, exported[name], version)
		}
	}
	for _, name := range []string{"rdma_query_addrinfo", "rdma_resolve_addrinfo", "rdma_write_cm_event"} {
		if exported[name] != "RDMACM_1.4" {
			t.Errorf("%s is at version %q", name, exported[name])
		}
	}
}

// cmMap gives the version of each name of a linker's version script.
func cmMap(text string) map[string]string {
	versions, version := map[string]string{}, ""
	for _, line := range strings.Split(text, "\n") {
		switch line = strings.TrimSpace(line); {
		case strings.HasSuffix(line, "{"):
			version = strings.Fields(line)[0]
		case strings.HasSuffix(line, ";") && !strings.HasPrefix(line, "}") && line != "*;":
			versions[strings.TrimSuffix(line, ";")] = version
		}
	}
	return versions
}
