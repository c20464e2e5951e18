package verbs

// RTValues are values of the card as of now (ibv_values_ex).
type RTValues struct {
	// RawClock is the free-running clock of completions' timestamps, in ns. It is the host's
	// CLOCK_MONOTONIC, so cards of one host can be compared.
	RawClock uint64
}

// QueryRTValues reads the card's clock (ibv_query_rt_values_ex).
func (c *Context) QueryRTValues() (RTValues, error) { return c.provider.QueryRTValues() }
