// SPDX-License-Identifier: Apache-2.0

package run

import (
	"reflect"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/config"
)

// TestEveryLimitIsSet: every limit of the server has a key in the configuration.
func TestEveryLimitIsSet(t *testing.T) {
	list := limits(config.Default())
	for _, v := range []reflect.Value{reflect.ValueOf(list), reflect.ValueOf(list.Limits), reflect.ValueOf(list.Container.Limits)} {
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("%s has no limit", v.Type().Field(i).Name)
			}
		}
	}
}
