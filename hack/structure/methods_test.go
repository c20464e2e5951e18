// SPDX-License-Identifier: Apache-2.0

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

// manyMethods are the types with more: the size of their method sets, which may only fall, and the reason.
var manyMethods = map[string]struct {
	number int
	reason string
}{
	// The names that programs call, as libibverbs and librdmacm have them.
	"verbs.QP":          {43, "ibv_qp"},
	"verbs/cm.ID":       {78, "rdma_cm_id"},
	"verbs/cm.Endpoint": {82, "rdma_cm_id with a queue pair (rdma_create_ep): embeds cm.ID"},

	// Machines to be divided.
	"datapath.Connection":     {56, "requester and responder of a connection"},
	"datapath/conn.Requester": {69, "the requester's half of the protocol"},
	"datapath/conn.Responder": {44, "the responder's half of the protocol"},
	"datapath/xsk.Socket":     {44, "the four rings of an AF_XDP socket"},
	"verbs/hca/cm.Manager":    {41, "the messages of connection management"},

	// Implementations of network.Host, an interface of 31 methods.
	"verbs/hca/memnet.Host": {42, "network.Host, and the tests' controls of the network"},
	"verbs/hca/udpnet.Host": {41, "network.Host"},

	// Types of commands that have a device or an endpoint, with its methods.
	"cmd/roced/demo.end":                    {128, "embeds the host of a demonstration"},
	"cmd/roced/demo.host":                   {127, "embeds a network namespace, a card.Device and a card.Endpoint"},
	"cmd/roced/demo.station":                {87, "embeds a network namespace and a card.Device"},
	"cmd/roced/exec.interfaceCard":          {42, "embeds hca.Card"},
	"cmd/roced/internal/card.Device":        {59, "embeds verbs.Context"},
	"cmd/roced/internal/card.Endpoint":      {43, "embeds ud.Endpoint"},
	"cmd/roced/internal/card.Stream":        {44, "embeds rc.Conn"},
	"cmd/roced/mcast.member":                {63, "embeds card.Endpoint"},
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
			n, listed := types.NewMethodSet(types.NewPointer(declared.Type())).Len(), manyMethods[folder+"."+name].number
			switch {
			case n > max(mostMethods, listed):
				t.Errorf("%s.%s has %d methods, with those of its embedded fields; at most %d", folder, name, n, max(mostMethods, listed))
			case listed > 0 && (n < listed || n <= mostMethods):
				t.Errorf("%s.%s has only %d methods: lower the number in the list, or take it out at %d", folder, name, n, mostMethods)
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
