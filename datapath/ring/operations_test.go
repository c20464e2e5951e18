// SPDX-License-Identifier: Apache-2.0

package ring

import (
	goflag "flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

var update = goflag.Bool("update", false, "write operations.h")

const operationsPreamble = `/* SPDX-License-Identifier: Apache-2.0 */
/* The kind of each opcode of a send request, and the services that have it, from meaning.go.
 *
 * Written by the tests of datapath/ring: go test ./datapath/ring -run Operations -update
 */
#ifndef ROCED_OPERATIONS_H
#define ROCED_OPERATIONS_H

#include "numbers.h"

enum roced_operation {
	ROCED_ON_RC = 1,
	ROCED_ON_UC = 2,
	ROCED_ON_UD = 4,
	ROCED_ON_XRC = 8,
	ROCED_HAS_DATA = 16, /* the request sends data, which may be inline */
	ROCED_IS_ATOMIC = 32,
	ROCED_IS_LOCAL = 64, /* carried out without packets */
	ROCED_NOT_BUILT = 128 /* no service has it */
};

static const unsigned char roced_operations[] = {
`

// operations returns the text of operations.h: the opcodes of numbers.h for C programs, which are below 32.
func operations(t *testing.T) string {
	t.Helper()
	numbers, err := os.ReadFile("numbers.h")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(operationsPreamble)
	for _, row := range regexp.MustCompile(`(ROCED_WR_\w+) = (\d+)`).FindAllStringSubmatch(string(numbers), -1) {
		if number, err := strconv.Atoi(row[2]); err == nil && number < 32 {
			fmt.Fprintf(&b, "\t[%s] = %s,\n", row[1], strings.Join(operation(ib.Opcode(number)), " | "))
		}
	}
	b.WriteString("};\n\n#endif\n")
	return b.String()
}

// operation returns the names of the bits of an opcode.
func operation(o ib.Opcode) (bits []string) {
	for _, s := range []struct {
		name    string
		service wire.Service
	}{{"RC", wire.ServiceRC}, {"UC", wire.ServiceUC}, {"UD", wire.ServiceUD}, {"XRC", wire.ServiceXRC}} {
		if o.On(s.service) {
			bits = append(bits, "ROCED_ON_"+s.name)
		}
	}
	means := o.Means()
	switch {
	case len(bits) == 0:
		return []string{"ROCED_NOT_BUILT"}
	case o.Local():
		return append(bits, "ROCED_IS_LOCAL")
	case means&(wire.MeansSend|wire.MeansWrite) != 0:
		return append(bits, "ROCED_HAS_DATA")
	case means&(wire.MeansCompareSwap|wire.MeansFetchAdd) != 0:
		return append(bits, "ROCED_IS_ATOMIC")
	}
	return bits
}

// TestOperations compares operations.h with the Go side.
func TestOperations(t *testing.T) {
	want := operations(t)
	if *update {
		if err := os.WriteFile("operations.h", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile("operations.h")
	if err != nil {
		t.Fatal(err)
	}
	if string(raw) != want {
		t.Error("operations.h differs from the Go side; run go test ./datapath/ring -run Operations -update and review the change")
	}
}
