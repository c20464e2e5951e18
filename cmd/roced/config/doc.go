// SPDX-License-Identifier: Apache-2.0

// Package config implements roced config, which checks a configuration file of the service (check.go) and
// prints an example (example.go). Package internal/config defines the format.
package config
