// SPDX-License-Identifier: Apache-2.0

package config

import _ "embed" // for Reference

// Reference is the commented configuration file with all keys.
//
//go:embed roced.toml
var Reference string
