package structure

import (
	"go/importer"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"
)

// mostMethods is the largest method set of a type, with the methods that embedded fields promote. A larger type is
// several: state that a type of its own should have, or an embedded field that should have a name.
const mostMethods = 40

// manyMethods are the types with more, the size of their method sets, which must not grow, and the reason.
var manyMethods = map[string]struct {
	most   int
	reason string
}{
	// The names that programs call, as libibverbs and librdmacm have them.
	"verbs.Context":     {82, "ibv_context: the commands of a device"},
	"verbs.QP":          {49, "ibv_qp"},
	"verbs/cm.ID":       {78, "rdma_cm_id"},
	"verbs/rc.Conn":     {59, "net.Conn, and what a connection has besides"},
	"verbs/cm.Endpoint": {82, "rdma_cm_id with a queue pair (rdma_create_ep): embeds cm.ID"},
	"verbs/ud.Endpoint": {59, "messages to and from peers and groups"},

	// Machines to be divided.
	"datapath.Engine":         {112, "the tables, rounds and timers of a card are its fields"},
	"datapath.Connection":     {56, "requester and responder of a connection"},
	"datapath/conn.Requester": {76, "the requester's half of the protocol"},
	"datapath/conn.Responder": {44, "the responder's half of the protocol"},
	"datapath/xsk.Socket":     {44, "the four rings of an AF_XDP socket"},
	"verbs/hca/cm.Manager":    {41, "the messages of connection management"},

	// Implementations of network.Host, an interface of 31 methods.
	"verbs/hca/memnet.Host": {42, "network.Host, and the tests' controls of the network"},
	"verbs/hca/udpnet.Host": {41, "network.Host"},

	// Types of commands that have a device or an endpoint, with its methods.
	"cmd/roced/demo.end":                    {193, "embeds the host of a demonstration"},
	"cmd/roced/demo.host":                   {192, "embeds a network namespace, a card.Device and a card.Endpoint"},
	"cmd/roced/demo.station":                {129, "embeds a network namespace and a card.Device"},
	"cmd/roced/exec.interfaceCard":          {42, "embeds hca.Card"},
	"cmd/roced/internal/card.Device":        {101, "embeds verbs.Context"},
	"cmd/roced/internal/card.Endpoint":      {66, "embeds ud.Endpoint"},
	"cmd/roced/internal/card.Stream":        {64, "embeds rc.Conn"},
	"cmd/roced/mcast.member":                {86, "embeds card.Endpoint"},
	"cmd/roced/perf/compatible.connections": {49, "embeds a run of perftest"},
	"cmd/roced/perf/compatible.datagrams":   {41, "embeds a run of perftest"},
	"cmd/roced/run/namespaces.card":         {41, "embeds hca.Card"},
}

// TestTypesHaveFewMethods counts the method sets of pointers to the types of packages that are shipped.
func TestTypesHaveFewMethods(t *testing.T) {
	folders, fset := shipped(t), token.NewFileSet()
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", compiledFor(t, folders))}
	for _, folder := range folders {
		checked, err := config.Check(folder, fset, commented(t, fset, folder), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range checked.Scope().Names() {
			declared, is := checked.Scope().Lookup(name).(*types.TypeName)
			if !is || declared.IsAlias() || types.IsInterface(declared.Type()) {
				continue
			}
			most := max(mostMethods, manyMethods[folder+"."+name].most)
			if n := types.NewMethodSet(types.NewPointer(declared.Type())).Len(); n > most {
				t.Errorf("%s.%s has %d methods, with those of its embedded fields; at most %d", folder, name, n, most)
			}
		}
	}
}

// shipped lists the folders of packages that are neither for tests, nor tools of this repository, nor of another module.
func shipped(t *testing.T) []string {
	t.Helper()
	folders, forTests := map[string]bool{}, map[string]bool{}
	for _, f := range sources(t) {
		if f.isTest() || strings.HasPrefix(f.folder, "hack/") || strings.HasPrefix(f.folder, "deploy/") {
			continue
		}
		folders[f.folder] = true
		forTests[f.folder] = forTests[f.folder] || slices.Contains(f.imports, "testing")
	}
	maps.DeleteFunc(folders, func(folder string, _ bool) bool { return forTests[folder] })
	return slices.Sorted(maps.Keys(folders))
}
