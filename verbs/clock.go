package verbs

import "fmt"

// RTValues are values of the card as of now (ibv_values_ex).
type RTValues struct {
	// RawClock is the free-running clock of completions' timestamps, in ns. It is the host's
	// CLOCK_MONOTONIC, so cards of one host can be compared.
	RawClock uint64
}

// QueryRTValues reads the card's clock (ibv_query_rt_values_ex).
func (c *Context) QueryRTValues() (RTValues, error) {
	if c == nil {
		return RTValues{}, fmt.Errorf("query RT values: %w", errNil)
	}
	return c.provider.QueryRTValues()
}
