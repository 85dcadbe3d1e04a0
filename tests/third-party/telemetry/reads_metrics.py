#!/usr/bin/env python3
"""Reads OpenMetrics text from standard input with the official parser, which refuses what breaks the format, and prints one JSON report:
of each metric its type, unit, help, and samples as [name, labels, value]."""

import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families


def main():
    report = {}
    for family in text_string_to_metric_families(sys.stdin.read()):
        samples = [[sample.name, sample.labels, sample.value] for sample in family.samples]
        report[family.name] = {"type": family.type, "unit": family.unit, "help": family.documentation, "samples": samples}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
