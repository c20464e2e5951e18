// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// write prints each finding on a line, with its remedy below.
func write(out io.Writer, list []finding) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, f := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Severity, f.Subject, f.Seen)
		if f.Do != "" {
			fmt.Fprintf(w, "\t\t→ %s\n", f.Do)
		}
	}
	return w.Flush()
}

func writeJSON(out io.Writer, list []finding) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e.Encode(list)
}

// problems returns the number of findings with severity problem.
func problems(list []finding) (n uint64) {
	for _, f := range list {
		if f.Severity == problem {
			n++
		}
	}
	return n
}
