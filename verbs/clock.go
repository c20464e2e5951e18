// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"

	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// RTValues are current values of the card (ibv_values_ex).
//
// See [ib.RTValues] for its fields.
type RTValues = ib.RTValues

// QueryRTValues reads the card's clock (ibv_query_rt_values_ex).
func (c *Context) QueryRTValues() (RTValues, error) {
	if c == nil {
		return RTValues{}, fmt.Errorf("query RT values: %w", errNil)
	}
	return provider.Do(c.provider, provider.QueryRTValues, provider.None{})
}
