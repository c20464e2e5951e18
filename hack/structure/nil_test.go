// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"path"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/compat"
	"github.com/roced/roced/verbs/kernel"
	"github.com/roced/roced/verbs/rc"
	"github.com/roced/roced/verbs/ud"
)

// nothing are nil pointers to the objects that programs get from these packages, often after an error that was
// not checked.
var nothing = map[string][]any{
	"verbs": {
		(*verbs.AH)(nil), (*verbs.CQ)(nil), (*verbs.CompChannel)(nil), (*verbs.Context)(nil), (*verbs.MR)(nil),
		(*verbs.MW)(nil), (*verbs.Membership)(nil), (*verbs.PD)(nil), (*verbs.QP)(nil), (*verbs.SRQ)(nil), (*verbs.TD)(nil),
		(*verbs.XRCD)(nil), (*verbs.DM)(nil), (*verbs.Counters)(nil),
	},
	"verbs/kernel": {(*kernel.FMR)(nil), (*kernel.HWStats)(nil)},
	"verbs/cm":     {(*cm.Endpoint)(nil), (*cm.EventChannel)(nil), (*cm.ID)(nil)},
	"verbs/rc":     {(*rc.Conn)(nil), (*rc.Domain)(nil), (*rc.Listener)(nil), (*rc.Region)(nil), (*rc.Stream)(nil), (*rc.StreamListener)(nil)},
	"verbs/ud":     {(*ud.Endpoint)(nil), (*ud.PacketConn)(nil)},
}

// functions are those that take objects of package verbs, beside it.
var functions = map[string][]any{
	"verbs/kernel": {
		kernel.AllocFMR, kernel.AllocFastMR, kernel.AllocHWStats, kernel.AllocIntegrityMR, kernel.CapAFIB, kernel.CapEthAH, kernel.CapIBCM,
		kernel.CapIBMAD, kernel.CapIBMcast, kernel.CapIBSA, kernel.CapIBSMI, kernel.CapIBSwitch, kernel.CapIWCM, kernel.CapOPAAH, kernel.CapOPAMAD,
		kernel.CapRoCEGIDTable, kernel.CheckMRStatus, kernel.DMAAllocCoherent, kernel.DMAFreeCoherent, kernel.DMAMapPage, kernel.DMAMapSG,
		kernel.DMAMapSingle, kernel.DMAMappingError, kernel.DMASyncSingleForCPU, kernel.DMASyncSingleForDevice, kernel.DMAUnmapPage,
		kernel.DMAUnmapSG, kernel.DMAUnmapSingle, kernel.DrainQP, kernel.DrainRQ, kernel.DrainSQ, kernel.EndPort, kernel.FindGID, kernel.FindPKey,
		kernel.IsPortValid, kernel.MapSG, kernel.MapSGPI, kernel.MaxMADSize, kernel.PeekCQ, kernel.ProtocolIB, kernel.ProtocolIWARP,
		kernel.ProtocolRawPacket, kernel.ProtocolRoCE, kernel.ProtocolRoCEEthEncap, kernel.ProtocolRoCEUDPEncap, kernel.ProtocolUSNIC,
		kernel.ReqNcompNotif, kernel.SGDMAAddress, kernel.SGDMALen, kernel.StartPort, kernel.UpdateFastRegKey,
	},
	"verbs/compat": {compat.AdviseMR, compat.GetPKeyIndex, compat.QueryDataInOrder, compat.QueryODPCaps, compat.QueryQP},
}

// TestNilObjects: a function of a nil object returns an error or, where it has none, nothing; it does not panic.
func TestNilObjects(t *testing.T) {
	for folder, list := range functions {
		names := functionsOf(t, "../../"+folder)
		for _, one := range list {
			of := reflect.TypeOf(one)
			_, name, _ := strings.Cut(path.Base(runtime.FuncForPC(reflect.ValueOf(one).Pointer()).Name()), ".")
			for what, argument := range map[string]func(reflect.Type) reflect.Value{"zero": reflect.Zero, "some": some} {
				objects := func(of reflect.Type) reflect.Value {
					if of.Kind() == reflect.Pointer && of.Elem().PkgPath() == verbsPath {
						return reflect.Zero(of)
					}
					return argument(of)
				}
				if err := call(name, reflect.ValueOf(one), of, nil, objects); err != nil {
					t.Errorf("%s.%s of nil, with %s arguments: %v", folder, name, what, err)
				}
			}
			delete(names, name)
		}
		for name := range names {
			t.Errorf("%s.%s is not tested", folder, name)
		}
	}
}

const verbsPath = module + "verbs"

// functionsOf returns the exported functions of a package with an object of package verbs among their parameters.
func functionsOf(t *testing.T, folder string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, file := range filesOf(t, folder) {
		for _, declaration := range file.Decls {
			function, is := declaration.(*ast.FuncDecl)
			if !is || function.Recv != nil || !function.Name.IsExported() {
				continue
			}
			for _, field := range function.Type.Params.List {
				if pointer, is := field.Type.(*ast.StarExpr); is {
					if of, is := pointer.X.(*ast.SelectorExpr); is && fmt.Sprint(of.X) == "verbs" {
						names[function.Name.Name] = true
					}
				}
			}
		}
	}
	return names
}

// plain are types with methods that are values: a program has them in its own variables.
var plain = []string{"Addr", "BadWRError", "Event", "Message", "QPAttr", "RejectedError", "QPAddr", "RemoteRegion", "RequestError", "SendError", "WC"}

// TestNilReceivers: a method of a nil pointer returns an error or, where it has none, nothing; it does not
// panic. Methods of an embedded type are that one's: Go looks for it before they are called.
func TestNilReceivers(t *testing.T) {
	for folder, list := range nothing {
		methods := methodsOf(t, "../../"+folder)
		for _, one := range list {
			kind := reflect.TypeOf(one)
			for _, name := range methods[kind.Elem().Name()] {
				method, _ := kind.MethodByName(name)
				for what, argument := range map[string]func(reflect.Type) reflect.Value{"zero": reflect.Zero, "some": some} {
					if err := callNil(reflect.ValueOf(one), method, argument); err != nil {
						t.Errorf("%v.%s of nil, with %s arguments: %v", kind, name, what, err)
					}
				}
			}
			delete(methods, kind.Elem().Name())
		}
		for name := range methods {
			if !slices.Contains(plain, name) {
				t.Errorf("%s.%s is not tested", folder, name)
			}
		}
	}
}

var errorType = reflect.TypeFor[error]()

// some is an argument that is not its type's zero value: nothing that a method checks first may hide that its receiver is nil.
func some(of reflect.Type) reflect.Value {
	value := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(of.Elem()))
	case reflect.Slice:
		value.Set(reflect.MakeSlice(of, 1, 1))
	case reflect.String:
		value.SetString("127.0.0.1:1")
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int, reflect.Int64:
		value.SetInt(1)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		value.SetUint(1)
	case reflect.Func:
		value.Set(reflect.MakeFunc(of, func([]reflect.Value) (results []reflect.Value) {
			for i := range of.NumOut() {
				results = append(results, reflect.Zero(of.Out(i)))
			}
			return results
		}))
	case reflect.Interface:
		for _, one := range []any{context.Background(), &net.UDPAddr{}, new(bytes.Buffer)} {
			if reflect.TypeOf(one).Implements(of) {
				value.Set(reflect.ValueOf(one))
				break
			}
		}
	}
	return value
}

// callNil calls a method with arguments that argument makes.
func callNil(receiver reflect.Value, method reflect.Method, argument func(reflect.Type) reflect.Value) error {
	return call(method.Name, method.Func, method.Type, []reflect.Value{receiver}, argument)
}

// call calls a function with these arguments, and those behind them that argument makes.
func call(name string, function reflect.Value, of reflect.Type, arguments []reflect.Value, argument func(reflect.Type) reflect.Value) (failed error) {
	defer func() {
		if cause := recover(); cause != nil {
			failed = fmt.Errorf("panic: %v", cause)
		}
	}()
	for i := len(arguments); i < of.NumIn(); i++ {
		arguments = append(arguments, argument(of.In(i)))
	}
	do := function.Call
	if of.IsVariadic() {
		do = function.CallSlice
	}
	for i, result := range do(arguments) {
		if of.Out(i) == errorType && name != "Unwrap" && result.IsNil() {
			return fmt.Errorf("no error")
		}
	}
	return nil
}

// methodsOf gives the exported methods of pointers to the exported types of a package.
func methodsOf(t *testing.T, folder string) map[string][]string {
	t.Helper()
	methods := map[string][]string{}
	for _, file := range filesOf(t, folder) {
		for _, declaration := range file.Decls {
			if kind, name := methodOf(declaration); kind != "" {
				methods[kind] = append(methods[kind], name)
			}
		}
	}
	return methods
}

// filesOf returns the files of a package, without tests.
func filesOf(t *testing.T, folder string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(folder + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// methodOf is the type of which a declaration is an exported method, with a pointer; empty if it is none.
func methodOf(declaration ast.Decl) (kind, name string) {
	method, is := declaration.(*ast.FuncDecl)
	if !is || method.Recv == nil || !method.Name.IsExported() {
		return "", ""
	}
	if pointer, is := method.Recv.List[0].Type.(*ast.StarExpr); is {
		if of, is := pointer.X.(*ast.Ident); is && of.IsExported() {
			return of.Name, method.Name.Name
		}
	}
	return "", ""
}
