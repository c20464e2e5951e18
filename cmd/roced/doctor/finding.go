// SPDX-License-Identifier: Apache-2.0

package doctor

// severity is the severity of a finding.
type severity string

// The severities.
const (
	good    severity = "ok"      // no action needed
	note    severity = "note"    // for information
	warning severity = "warning" // works with limitations
	problem severity = "problem" // does not work
)

// finding is the result of one check.
type finding struct {
	Subject  string   `json:"subject"`
	Severity severity `json:"severity"`
	Seen     string   `json:"seen"`
	Do       string   `json:"do,omitempty"` // remedy; empty if none is needed
}

func ok(subject, seen string) []finding { return []finding{{subject, good, seen, ""}} }

func report(subject string, s severity, seen, do string) []finding {
	return []finding{{subject, s, seen, do}}
}
