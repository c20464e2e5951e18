// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// kindNames are the names of kinds.
var kindNames = []string{
	"ErrInvalid", "ErrState", "ErrQueueFull", "ErrLimit", "ErrBusy", "ErrPermission",
	"ErrUnsupported", "ErrUnreachable", "ErrNoGID", "ErrCQOverrun", "ErrDeviceFatal", "ErrClosed",
	"ErrObjectClosed", "ErrHost", "ErrAddrNotAvail", "ErrAddrInUse", "ErrNotFound",
}

// Every error of package verbs has a bit.
func TestAllKindsCross(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, is := n.(*ast.ValueSpec); is && strings.HasPrefix(spec.Names[0].Name, "Err") {
			found = append(found, spec.Names[0].Name)
		}
		return true
	})
	ours := slices.Clone(kindNames)
	slices.Sort(ours)
	if slices.Sort(found); !slices.Equal(found, ours) || len(kinds) != len(kindNames) {
		t.Errorf("verbs has %v, this package %v", found, ours)
	}
}

// What an error is survives, and its text.
func TestFailures(t *testing.T) {
	rows := []error{
		fmt.Errorf("create QP: %w: too many", verbs.ErrLimit),
		fmt.Errorf("%w: %w", verbs.ErrHost, unix.ENOBUFS),
		errors.Join(verbs.ErrUnreachable, unix.ENETDOWN),
		verbs.ErrClosed,
		errors.New("of no kind"),
		fmt.Errorf("%w %s", verbs.ErrInvalid, strings.Repeat("ä\x00", maxText)),
	}
	for _, want := range rows {
		m, err := Parse(EncodeFailure(Failure, 7, 8, want))
		if err != nil || m.Kind != Failure || m.Code != 7 || m.ID != 8 {
			t.Fatalf("%+v, %v", m, err)
		}
		got, err := DecodeFailure(m.Body)
		if err != nil {
			t.Fatal(err)
		}
		if text := clip(want.Error(), maxText); got.Error() != text {
			t.Errorf("%q, want %q", got, text)
		}
		for _, is := range append(slices.Clone(kinds), unix.ENOBUFS, unix.ENETDOWN, unix.ENOMEM, unix.EINVAL) {
			if errors.Is(got, is) != errors.Is(want, is) {
				t.Errorf("%q is %v: %v", want, is, errors.Is(got, is))
			}
		}
		if verbs.KindOf(got) != verbs.KindOf(want) {
			t.Errorf("%q is of kind %v", want, verbs.KindOf(got))
		}
	}
}
