// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/roced/roced/internal/needs"
)

var update = flag.Bool("update", false, "write proto.h anew")

// structure is one of the header.
type structure struct {
	name, says string
	fields     []field
}

// size is the length up to a list, if there is one.
func (s *structure) size() (n int) {
	for _, f := range s.fields {
		n += f.size * max(f.count, min(f.count+1, 1))
	}
	return n
}

// alignment returns how C aligns fields.
func alignment(fields []field) (most int) {
	for _, f := range fields {
		most = max(most, f.alignment())
	}
	return most
}

func (f *field) alignment() int {
	if f.part != nil {
		return alignment(f.part)
	}
	if f.entry != nil {
		return alignment(f.entry)
	}
	return f.size
}

// structures are all, in the order of the header: each once, and its parts before it.
func structures() (list []structure) {
	known := map[string][]field{}
	var add func(s structure)
	add = func(s structure) {
		for _, f := range s.fields {
			if f.part != nil {
				add(structure{f.kind, "", f.part})
			}
		}
		if before, is := known[s.name]; !is {
			known[s.name] = s.fields
			list = append(list, s)
		} else if !reflect.DeepEqual(before, s.fields) {
			panic("two structures are called " + s.name)
		}
	}
	for _, s := range withParts() {
		add(s)
	}
	return list
}

// withParts are the structures of messages and of entries in their lists.
func withParts() (list []structure) {
	list = append(list,
		structure{"message", "Begins every packet.", fieldsOf(func(c *coder, m any) { m.(*Message).visit(c) }, new(Message))},
		structure{"failure", "Of Failure and Ended. kinds: a bit for each of enum roced_error; the first of errnos is what libibverbs gives.", fieldsOf(func(c *coder, f any) { f.(*failure).visit(c) }, new(failure))},
		structure{"cancel", "Of Cancel; see enum roced_cancel_reason.", fieldsOf(func(c *coder, r any) { r.(*CancelReason).visit(c) }, new(CancelReason))},
	)
	for _, d := range all {
		for _, half := range []struct {
			suffix string
			fields []field
		}{{"request", fieldsOf(d.request, d.newRequest())}, {"grant", fieldsOf(d.grant, d.newGrant())}} {
			if n := len(half.fields); n > 0 && half.fields[n-1].entry != nil {
				list = append(list, structure{d.Name + "_entry", "An entry of the list in struct roced_" + d.Name + "_" + half.suffix + ".", half.fields[n-1].entry})
			}
			if len(half.fields) > 0 {
				list = append(list, structure{d.Name + "_" + half.suffix, "", half.fields})
			}
		}
	}
	return list
}

// enums are the numbers of the header.
func enums() string {
	var b strings.Builder
	fmt.Fprintf(&b, "enum {\n\tROCED_PROTO_MAGIC = 0x%x,\n\tROCED_PROTO_OLDEST_VERSION = %d,\n\tROCED_PROTO_VERSION = %d,\n\tROCED_PROTO_MAX_MESSAGE = %d,\n};\n\n", Magic, OldestVersion, Version, MaxMessage)
	fmt.Fprintf(&b, "enum roced_message_kind {\n\tROCED_REQUEST = %d,\n\tROCED_CANCEL = %d,\n\tROCED_REPLY = %d,\n\tROCED_FAILURE = %d,\n\tROCED_ENDED = %d,\n};\n\n", Request, Cancel, Reply, Failure, Ended)
	fmt.Fprintf(&b, "enum roced_cancel_reason {\n\tROCED_CANCELED = %d,\n\tROCED_DEADLINE_EXCEEDED = %d,\n};\n\n", Canceled, DeadlineExceeded)
	b.WriteString("/* Bits of roced_failure.kinds; package verbs describes the errors. */\nenum roced_error {\n")
	for bit, name := range kindNames {
		fmt.Fprintf(&b, "\tROCED_%s = 1 << %d,\n", cName(name), bit)
	}
	b.WriteString("};\n\n/* Of list_objects. Attachments are of queue pairs to groups. */\nenum roced_object_kind {\n")
	for i, name := range []string{"PDS", "CQS", "QPS", "SRQS", "MRS", "AHS", "ATTACHMENTS", "MEMBERSHIPS"} {
		fmt.Fprintf(&b, "\tROCED_%s = %d,\n", name, PDs+ObjectKind(i))
	}
	b.WriteString("};\n\nenum roced_command {\n")
	for _, d := range all {
		fmt.Fprintf(&b, "\tROCED_%s = %d,\n", strings.ToUpper(d.Name), d.Number)
	}
	b.WriteString("};\n")
	return b.String()
}

// cName spells a Go name as C does: ErrNoGID, ERR_NO_GID.
func cName(name string) string {
	var b strings.Builder
	for i, r := range name {
		lower := i > 0 && name[i-1] >= 'a' && name[i-1] <= 'z'
		ends := i > 0 && i+1 < len(name) && name[i+1] >= 'a' && name[i+1] <= 'z'
		if r >= 'A' && r <= 'Z' && (lower || ends) {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}

// header is the text of proto.h.
func header() string {
	var b strings.Builder
	b.WriteString(preamble)
	b.WriteString(enums())
	for _, s := range structures() {
		b.WriteByte('\n')
		if s.says != "" {
			fmt.Fprintf(&b, "/* %s */\n", s.says)
		}
		fmt.Fprintf(&b, "struct roced_%s {\n", s.name)
		for _, f := range s.fields {
			b.WriteString("\t" + declaration(s.name, f) + "\n")
		}
		b.WriteString("};\n")
	}
	return b.String() + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n"
}

// declaration is a field in C.
func declaration(of string, f field) string {
	switch {
	case f.count == -1 && f.entry == nil:
		return fmt.Sprintf("%s %s[];", f.kind, f.name)
	case f.count == -1:
		command := strings.TrimSuffix(strings.TrimSuffix(of, "_grant"), "_request")
		return fmt.Sprintf("struct roced_%s_entry %s[];", command, f.name)
	case f.part != nil:
		return fmt.Sprintf("struct roced_%s %s;", f.kind, f.name)
	case f.count > 0:
		if strings.HasPrefix(f.name, "reserved") {
			return fmt.Sprintf("%s %s[%d]; /* 0 */", f.kind, f.name, f.count)
		}
		return fmt.Sprintf("%s %s[%d];", f.kind, f.name, f.count)
	}
	return fmt.Sprintf("%s %s;", f.kind, f.name)
}

const preamble = `/* SPDX-License-Identifier: Apache-2.0 */
/* What client and service of roced say to each other. See the documentation of
 * package verbs/proto (doc.go), and ring.h for the queues and all numbers.
 *
 * Written by the tests of verbs/proto from its Go side: go test ./verbs/proto -update
 *
 * A packet is a struct roced_message and the structure of its kind: a command's request or grant
 * (none if it has no fields), or one of those below. All is little-endian, aligned by its size. A list
 * has as many entries as its count says.
 *
 * What has to be 0, else the packet is malformed: reserved bytes; what is behind
 * the end of a text (char), of which the last byte is 0; of an address whose family is 0 (none) its bytes
 * and zone, and of one of IPv4 (4; IPv6 is 6) its last 12 bytes and zone; the port of the addresses of
 * find_route and of groups, which have none. Fields that say yes or no are 0 or 1. Other fields that mean
 * nothing for what is asked for may be 0.
 *
 * A struct roced_place names a part of the session's shared memory.
 */
#ifndef ROCED_PROTO_H
#define ROCED_PROTO_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

`

// proto.h is what the Go side makes of it, so each field is where Go has it; and a C compiler finds it
// there too.
func TestHeader(t *testing.T) {
	if *update {
		if err := os.WriteFile("proto.h", []byte(header()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile("proto.h")
	if err != nil {
		t.Fatal(err)
	}
	if string(raw) != header() {
		t.Error("proto.h differs from the Go structures; run go test ./verbs/proto -update, and check the changes")
	}
	compileAssertions(t)
}

func compileAssertions(t *testing.T) {
	t.Helper()
	needs.Tools(t, "cc", "/usr/include/stdio.h")
	var b strings.Builder
	b.WriteString("#include <stddef.h>\n#include \"proto.h\"\n")
	for _, s := range structures() {
		for _, f := range s.fields {
			fmt.Fprintf(&b, "_Static_assert(offsetof(struct roced_%[1]s, %[2]s) == %[3]d, \"%[1]s.%[2]s\");\n", s.name, f.name, f.offset)
		}
		fmt.Fprintf(&b, "_Static_assert(sizeof(struct roced_%[1]s) == %[2]d, \"%[1]s\");\n", s.name, s.size())
	}
	source := filepath.Join(t.TempDir(), "proto.c")
	if err := os.WriteFile(source, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := needs.Command(t, "cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", folder, source).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// What the header cannot say: numbers lie where their size aligns them, so that C adds no padding, and
// names are used once.
func TestLayout(t *testing.T) {
	messages := map[string]bool{}
	for _, s := range withParts() {
		messages[s.name] = true
	}
	for _, s := range structures() {
		names := map[string]bool{}
		for _, f := range s.fields {
			if names[f.name] {
				t.Errorf("%s has two fields %s", s.name, f.name)
			}
			names[f.name] = true
			if f.entry == nil && f.count == -1 && f.size != 1 || f.entry != nil && len(f.entry) == 0 {
				t.Errorf("%s.%s is a list of nothing that C knows", s.name, f.name)
			}
			if f.offset%f.alignment() != 0 {
				t.Errorf("%s.%s lies at %d", s.name, f.name, f.offset)
			}
		}
		if len(s.fields) == 0 {
			t.Errorf("%s is empty, which C does not know", s.name)
		}
		if s.size()%alignment(s.fields) != 0 || messages[s.name] && s.size()%8 != 0 {
			t.Errorf("%s has %d bytes", s.name, s.size())
		}
	}
	codes := map[uint16]bool{}
	for _, d := range all {
		if codes[d.Number] {
			t.Errorf("two commands are %d", d.Number)
		}
		codes[d.Number] = true
	}
}
