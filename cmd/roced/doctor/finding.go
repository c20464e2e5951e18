package doctor

// severity is how bad a finding is.
type severity string

// The severities.
const (
	good    severity = "ok"
	note    severity = "note"    // good to know
	warning severity = "warning" // works, but not always or not well
	problem severity = "problem" // does not work
)

// finding is what one check says.
type finding struct {
	Subject  string   `json:"subject"`
	Severity severity `json:"severity"`
	Seen     string   `json:"seen"`
	Do       string   `json:"do,omitempty"` // what to do, empty if nothing
}

func ok(subject, seen string) []finding { return []finding{{subject, good, seen, ""}} }

func says(subject string, s severity, seen, do string) []finding {
	return []finding{{subject, s, seen, do}}
}
