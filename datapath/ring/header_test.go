package ring

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// structures are ring.h's, with the offset of each member as this package has it.
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
	"roced_atomic":   {"compare_add": 0, "swap": 8, "": AtomicLen},
	"roced_bind":     {"length": 0, "lkey": 8, "access": 12, "": BindLen},
	"roced_recv_wqe": {"id": recvID, "sge_count": recvSGECount, "reserved": 12, "": recvHeader},
	"roced_cqe": {
		"id": cqeID, "status": cqeStatus, "opcode": cqeStatus + 1, "flags": cqeStatus + 2, "byte_length": cqeByteLen, "imm": cqeImm, "qpn": cqeQPN,
		"source_qp": cqeSourceQP, "token": cqeToken, "vendor_error": cqeVendor, "pkey_index": cqePKeyIndex, "source_mac": cqeSMAC,
		"vlan": cqeSMACRest + 4, "network_header": cqeSMACRest + 6, "service_level": cqeSMACRest + 7, "port": cqePort, "reserved": cqePort + 1, "": cqeStride,
	},
	"roced_stamped_cqe": {"cqe": 0, "timestamp": cqeTimestamp, "wallclock": cqeWallclock, "reserved": cqeWallclock + 8, "": cqeStampedStride},
	"roced_doorbell":    {"asleep": 0, "reserved": 4, "summary": summaryOffset, "bits": bitsOffset, "": DoorbellSize},
}

// layout are the numbers of ring.h that are no numbers of libibverbs.
var layout = map[string]int{
	"ROCED_PRODUCER_WORDS": 0, "ROCED_CONSUMER_WORDS": consumerWords, "ROCED_SLOTS": slotsOffset,
	"ROCED_MAX_ENTRIES": MaxEntries, "ROCED_MAX_SGE": MaxSGE, "ROCED_MAX_INLINE": MaxInline, "ROCED_MAX_QUEUE_PAIRS": MaxQueuePairs,
	"ROCED_SEND_ERROR": sendErrorWord, "ROCED_RECV_FLUSH": recvFlushWord, "ROCED_CQ_ERROR": cqErrorWord, "ROCED_CQ_ARMED": cqArmedWord, "ROCED_CQ_THRESHOLD": cqThresholdWord,
	"ROCED_CQ_ARMED_NEXT": int(ArmedNext), "ROCED_CQ_ARMED_SOLICITED": int(ArmedSolicited), "ROCED_CQ_ARMED_COUNT": int(ArmedCount), "ROCED_CQ_ARMED_WAIT": int(ArmedWait),
}

// enums are ring.h's of the numbers of libibverbs: the Go type, how its constants begin where
// C's do not, and how libibverbs' begin ("" where it has none).
var enums = map[string]struct{ goType, goPrefix, prefix, ibv string }{
	"roced_wr_opcode":        {"Opcode", "WR", "ROCED_WR_", "IBV_WR_"},
	"roced_send_flags":       {"SendFlags", "Send", "ROCED_SEND_", "IBV_SEND_"},
	"roced_wc_status":        {"WCStatus", "WC", "ROCED_WC_", "IBV_WC_"},
	"roced_wc_opcode":        {"WCOpcode", "WC", "ROCED_WC_", "IBV_WC_"},
	"roced_wc_flags":         {"WCFlags", "WC", "ROCED_WC_", ""},
	"roced_network_type":     {"NetworkType", "Network", "ROCED_NETWORK_", ""},
	"roced_qp_type":          {"QPType", "QPType", "ROCED_QPT_", "IBV_QPT_"},
	"roced_qp_state":         {"QPState", "QPState", "ROCED_QPS_", "IBV_QPS_"},
	"roced_qp_attr_mask":     {"QPAttrMask", "QPAttr", "ROCED_QP_", "IBV_QP_"},
	"roced_path_mig_state":   {"PathMigState", "Mig", "ROCED_MIG_", "IBV_MIG_"},
	"roced_srq_attr_mask":    {"SRQAttrMask", "SRQ", "ROCED_SRQ_", "IBV_SRQ_"},
	"roced_link_layer":       {"LinkLayer", "LinkLayer", "ROCED_LINK_LAYER_", "IBV_LINK_LAYER_"},
	"roced_access_flags":     {"AccessFlags", "Access", "ROCED_ACCESS_", "IBV_ACCESS_"},
	"roced_mw_type":          {"MWType", "MWType", "ROCED_MW_TYPE_", "IBV_MW_TYPE_"},
	"roced_rereg_mr_flags":   {"ReregFlags", "Rereg", "ROCED_REREG_MR_", "IBV_REREG_MR_"},
	"roced_event_type":       {"EventType", "Event", "ROCED_EVENT_", "IBV_EVENT_"},
	"roced_port_state":       {"PortState", "Port", "ROCED_PORT_", "IBV_PORT_"},
	"roced_port_phys_state":  {"PortPhysState", "PhysState", "ROCED_PHYS_STATE_", ""},
	"roced_port_cap_flags":   {"PortCapFlags", "PortCap", "ROCED_PORT_CAP_", "IBV_PORT_"},
	"roced_device_cap_flags": {"DeviceCapFlags", "Device", "ROCED_DEVICE_", "IBV_DEVICE_"},
	"roced_atomic_cap":       {"AtomicCap", "Atomic", "ROCED_ATOMIC_", "IBV_ATOMIC_"},
	"roced_gid_type":         {"GIDType", "GIDType", "ROCED_GID_TYPE_", "IBV_GID_TYPE_"},
	"roced_rate":             {"Rate", "Rate", "ROCED_RATE_", "IBV_RATE_"},
	"roced_join_flags":       {"JoinFlags", "Join", "ROCED_JOIN_", ""},
	"roced_cm_event_type":    {"CMEventType", "CMEvent", "ROCED_CM_EVENT_", ""},
	"roced_id_option":        {"IDOption", "IDOption", "ROCED_ID_OPTION_", ""},
}

// foreign are numbers that libibverbs calls otherwise ("": it has none).
var foreign = map[string]string{
	"ROCED_EVENT_CQ_ERR": "IBV_EVENT_CQ_ERR", "ROCED_EVENT_MTU_CHANGE": "",
	"ROCED_QPT_XRC_SEND": "IBV_QPT_XRC_SEND", "ROCED_QPT_SMI": "", "ROCED_QPT_GSI": "",
	"ROCED_RATE_PORT_CURRENT": "IBV_RATE_MAX", "ROCED_RATE_800_GBPS": "", "ROCED_RATE_1200_GBPS": "", "ROCED_RATE_1600_GBPS": "", // not in all versions
	"ROCED_ACCESS_FLUSH_GLOBAL": "", "ROCED_ACCESS_FLUSH_PERSISTENT": "", // not in all versions
}

// constants are the package's constants of a type, by their C names.
func constants(t *testing.T) map[string]map[string]int64 {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range []string{"numbers.go", "cmnumbers.go"} {
		file, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}}
	if _, err := (&types.Config{Importer: importer.Default()}).Check("ring", fset, files, info); err != nil {
		t.Fatal(err)
	}
	byType := map[string]map[string]int64{}
	for name, object := range info.Defs {
		c, ok := object.(*types.Const)
		named, typed := types.Type(nil), false
		if ok {
			named, typed = c.Type().(*types.Named)
		}
		if !ok || !typed {
			continue
		}
		kind := named.(*types.Named).Obj().Name()
		if byType[kind] == nil {
			byType[kind] = map[string]int64{}
		}
		value, _ := constant.Int64Val(c.Val())
		byType[kind][name.Name] = value
	}
	return byType
}

// cName spells a Go name as C does: RDMAWriteWithImm, RDMA_WRITE_WITH_IMM.
func cName(name string) string {
	for _, spelling := range []struct{ from, to string }{
		{"RDMA", "Rdma"}, {"RCRNRNAK", "RcRnrNak"}, {"Type2B", "Type_2b"}, {"RNR", "Rnr"}, {"RDD", "Rdd"}, {"EECN", "Eecn"}, {"EEC", "Eec"}, {"SMAC", "Smac"}, {"VLAN", "Vlan"}, {"GRH", "Grh"},
		{"XRC", "Xrc"}, {"SRQ", "Srq"}, {"SQDrained", "SqDrained"}, {"SQDAsync", "SqdAsync"}, {"SQD", "Sqd"}, {"SQE", "Sqe"}, {"SQPSN", "SqPsn"}, {"RQPSN", "RqPsn"}, {"QPRDAtomic", "QpRdAtomic"}, {"RDAtomic", "RdAtomic"}, {"QPN", "Qpn"}, {"AV", "Av"}, {"SMI", "Smi"}, {"GSI", "Gsi"}, {"InfiniBand", "Infiniband"}, {"SQ", "Sq"}, {"CQ", "Cq"}, {"QP", "Qp"}, {"LastWQE", "LastWqe"}, {"QKey", "Qkey"}, {"PKey", "Pkey"},
		{"GID", "Gid"}, {"MTU", "Mtu"}, {"MW", "Mw"}, {"ChangePD", "ChangePd"}, {"HugeTLB", "Hugetlb"}, {"2p5", "2_5"}, {"IPBased", "IpBased"}, {"NNotify", "N_Notify"}, {"RoCEv", "Roce_v"}, {"WR", "Wr"}, {"InvRD", "InvRd"}, {"IPv4", "Ipv4"}, {"IPv6", "Ipv6"},
	} {
		name = strings.ReplaceAll(name, spelling.from, spelling.to)
	}
	return strings.ToUpper(regexp.MustCompile(`([a-z0-9])([A-Z])`).ReplaceAllString(name, "${1}_${2}"))
}

// header is the text of ring.h, and its enums' names.
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

// assertions are what the compiler is to check.
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
		t.Errorf("ring.h has %d structures, the test knows %d", n, len(structures))
	}
	for _, name := range names[""] {
		if _, ok := layout[name]; !ok {
			t.Errorf("%s of ring.h is not in the test's list", name)
		}
		equal(name, int64(layout[name]))
	}
	ours := constants(t)
	for enum, kind := range enums {
		all = append(all, sameNumbers(t, kind, names[enum], ours[kind.goType], equal)...)
	}
	if len(names) != len(enums)+1 {
		t.Errorf("ring.h has %d named enums, the test knows %d", len(names)-1, len(enums))
	}
	return all
}

// sameNumbers holds an enum to the constants of a Go type, and to libibverbs' where that is
// installed.
func sameNumbers(t *testing.T, kind struct{ goType, goPrefix, prefix, ibv string }, c []string, ours map[string]int64, equal func(string, int64)) (ibv []string) {
	t.Helper()
	missing := map[string]int64{}
	for name, value := range ours {
		missing[kind.prefix+cName(strings.TrimPrefix(name, kind.goPrefix))] = value
	}
	for _, name := range c {
		value, ok := missing[name]
		if !ok {
			t.Errorf("%s of ring.h is no constant of %s", name, kind.goType)
			continue
		}
		delete(missing, name)
		equal(name, value)
		theirs, renamed := foreign[name]
		if !renamed && kind.ibv != "" {
			theirs = kind.ibv + strings.TrimPrefix(name, kind.prefix)
		}
		if theirs != "" {
			ibv = append(ibv, fmt.Sprintf("#ifdef HAVE_IBV\n_Static_assert((int)%s == (int)%s, %q);\n#endif", name, theirs, name))
		}
	}
	for name := range missing {
		t.Errorf("ring.h lacks %s of %s", name, kind.goType)
	}
	return ibv
}

// The header says what the Go side does: sizes, offsets, numbers, and where libibverbs is
// installed its numbers too.
func TestHeader(t *testing.T) {
	compiler, err := exec.LookPath("cc")
	if err != nil {
		if compiler, err = exec.LookPath("clang"); err != nil {
			t.Skip("no C compiler (gcc or clang)")
		}
	}
	source := "#include <stddef.h>\n#include \"ring.h\"\n" +
		"#if __has_include(<infiniband/verbs.h>)\n#include <infiniband/verbs.h>\n#define HAVE_IBV\n#endif\n" +
		strings.Join(assertions(t), "\n") + "\n"
	compile(t, compiler, "c", "gnu11", source)
}

// Strict compilers of older standards take the header too, and C++'s where there is one.
func TestHeaderIsStrict(t *testing.T) {
	compiled := 0
	for _, row := range []struct {
		compilers []string
		language  string
		standards []string
	}{
		{[]string{"cc", "gcc", "clang"}, "c", []string{"c89", "c99", "c11"}},
		{[]string{"c++", "g++", "clang++"}, "c++", []string{"c++98", "c++11"}},
	} {
		for _, compiler := range row.compilers {
			if _, err := exec.LookPath(compiler); err != nil {
				continue
			}
			for _, standard := range row.standards {
				compile(t, compiler, row.language, standard, "#include \"ring.h\"\n", "-pedantic")
				compiled++
			}
		}
	}
	if compiled == 0 {
		t.Skip("no C compiler (gcc or clang)")
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
	output, err := exec.Command(compiler, append(arguments, file)...).CombinedOutput()
	if err != nil {
		t.Errorf("%s -std=%s: %v\n%s", compiler, standard, err, output)
	}
}
