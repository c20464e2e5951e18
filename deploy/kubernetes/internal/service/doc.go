// SPDX-License-Identifier: Apache-2.0

// Package service adds and removes sockets of containers at roced's service, like "roced socket".
package service
