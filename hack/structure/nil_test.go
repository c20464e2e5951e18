package structure

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/rc"
	"github.com/roced/roced/verbs/ud"
)

// nothing are nil pointers to the objects that programs get from these packages, often after an error that was
// not checked.
var nothing = map[string][]any{
	"verbs": {
		(*verbs.AH)(nil), (*verbs.CQ)(nil), (*verbs.CompChannel)(nil), (*verbs.Context)(nil), (*verbs.HWStats)(nil), (*verbs.MR)(nil),
		(*verbs.MW)(nil), (*verbs.Membership)(nil), (*verbs.PD)(nil), (*verbs.QP)(nil), (*verbs.SRQ)(nil), (*verbs.TD)(nil),
		(*verbs.XRCD)(nil), (*verbs.DM)(nil), (*verbs.FMR)(nil), (*verbs.Counters)(nil),
	},
	"verbs/cm": {(*cm.Endpoint)(nil), (*cm.EventChannel)(nil), (*cm.ID)(nil)},
	"verbs/rc": {(*rc.Conn)(nil), (*rc.Domain)(nil), (*rc.Listener)(nil), (*rc.Region)(nil), (*rc.Stream)(nil), (*rc.StreamListener)(nil)},
	"verbs/ud": {(*ud.Endpoint)(nil), (*ud.PacketConn)(nil)},
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
func callNil(receiver reflect.Value, method reflect.Method, argument func(reflect.Type) reflect.Value) (failed error) {
	defer func() {
		if cause := recover(); cause != nil {
			failed = fmt.Errorf("panic: %v", cause)
		}
	}()
	arguments := []reflect.Value{receiver}
	for i := 1; i < method.Type.NumIn(); i++ {
		arguments = append(arguments, argument(method.Type.In(i)))
	}
	call := method.Func.Call
	if method.Type.IsVariadic() {
		call = method.Func.CallSlice
	}
	for i, result := range call(arguments) {
		if of := method.Type.Out(i); of == errorType && method.Name != "Unwrap" && result.IsNil() {
			return fmt.Errorf("no error")
		}
	}
	return nil
}

// methodsOf gives the exported methods of pointers to the exported types of a package.
func methodsOf(t *testing.T, folder string) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	methods := map[string][]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			if kind, name := methodOf(declaration); kind != "" {
				methods[kind] = append(methods[kind], name)
			}
		}
	}
	return methods
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
