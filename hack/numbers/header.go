// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
)

// writeHeader writes the enumerations for C.
func writeHeader(b *bytes.Buffer, kinds []kind) {
	fmt.Fprintf(b, "/* %s */\n/* %s\n *\n", licence, generated)
	b.WriteString(" * The numbers of libibverbs and librdmacm; where they have none, those of the kernel's ib_verbs.h.\n */\n")
	b.WriteString("#ifndef ROCED_NUMBERS_H\n#define ROCED_NUMBERS_H\n")
	for _, k := range kinds {
		if k.enum == "" {
			continue
		}
		fmt.Fprintf(b, "\nenum %s {\n", k.enum)
		for i, n := range k.numbers {
			name, _ := k.c(&n)
			comma := ","
			if i == len(k.numbers)-1 {
				comma = ""
			}
			fmt.Fprintf(b, "\t%s = %s%s\n", name, cValue(n.value), comma)
		}
		b.WriteString("};\n")
	}
	b.WriteString("\n#endif\n")
}

// cValue formats a value so that compilers do not warn about missing parentheses.
func cValue(value string) string {
	if shift, rest, sum := strings.Cut(value, " + "); sum {
		return fmt.Sprintf("(%s) + %s", strings.Replace(shift, "<<", " << ", 1), rest)
	}
	return value
}

// writeTheirs writes assertions that libibverbs' numbers are these.
func writeTheirs(b *bytes.Buffer, kinds []kind) {
	fmt.Fprintf(b, "/* %s */\n/* %s\n *\n * To be compiled after numbers.h and infiniband/verbs.h. */\n", licence, generated)
	for _, k := range kinds {
		for _, n := range k.numbers {
			if ours, theirs := k.c(&n); theirs != "" {
				fmt.Fprintf(b, "_Static_assert((int)%s == (int)%s, %q);\n", ours, theirs, ours)
			}
		}
	}
}
