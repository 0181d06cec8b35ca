#!/usr/bin/env bash
# Builds the collector of OpenTelemetry into target/test-tools/bin/otelcol, from its published Go modules: the receiver of
# OTLP, and an exporter that prints every record. The test `otlp::the_official_collector_takes_the_log` speaks with it where
# it is there. A build takes two minutes, so `make test` does without it.
set -euo pipefail
cd "$(dirname "$0")/.."

bin="$PWD/target/test-tools/bin"
# Modules of a release have one of two versions: stable and not yet stable ones.
stable=v1.71.0
unstable=v0.165.0

command -v go >/dev/null || {
    echo "build-otelcol: no go on this machine" >&2
    exit 1
}
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir -p "$bin"
cd "$work"
cat >main.go <<'END'
package main

import (
	"log"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/debugexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

func factories() (made otelcol.Factories, err error) {
	made.Telemetry = otelconftelemetry.NewFactory()
	made.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory())
	if err == nil {
		made.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](debugexporter.NewFactory())
	}
	return made, err
}

func main() {
	files := []confmap.ProviderFactory{fileprovider.NewFactory()}
	settings := otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "otelcol"},
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{
			ResolverSettings: confmap.ResolverSettings{ProviderFactories: files, DefaultScheme: "file"},
		},
	}
	if err := otelcol.NewCommand(settings).Execute(); err != nil {
		log.Fatal(err)
	}
}
END
go mod init collector >/dev/null 2>&1
for module in component confmap confmap/provider/fileprovider exporter receiver; do
    go mod edit -require "go.opentelemetry.io/collector/$module@$stable"
done
for module in exporter/debugexporter otelcol receiver/otlpreceiver service; do
    go mod edit -require "go.opentelemetry.io/collector/$module@$unstable"
done
go mod tidy
go build -o "$bin/otelcol" .
echo "build-otelcol: $bin/otelcol" >&2
