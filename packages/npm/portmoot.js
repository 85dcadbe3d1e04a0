#!/usr/bin/env node
// Starts the binary of this machine's package, with the same arguments, input and output.
'use strict';

const { spawn } = require('node:child_process');
const { constants } = require('node:os');

const name = `portmoot-${process.platform}-${process.arch}`;

let binary;
try {
  binary = require.resolve(`${name}/bin/portmoot`);
} catch {
  console.error(
    `portmoot: the package ${name} is not installed.\n` +
      'Either there is no binary for this machine, or npm was told to omit optional dependencies.\n' +
      'With Rust: cargo install --path crates/program/portmoot in a clone of the repository.'
  );
  process.exit(1);
}

const child = spawn(binary, process.argv.slice(2), { stdio: 'inherit' });
// A terminal sends its signals to the child itself; those of other programs are passed on.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) {
  process.on(signal, () => child.kill(signal));
}
child.on('error', (error) => {
  console.error(`portmoot: cannot start ${binary}: ${error.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => {
  process.exit(code ?? 128 + (constants.signals[signal] ?? 0));
});
