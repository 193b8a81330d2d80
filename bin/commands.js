/**
 * Every subcommand: the file that runs it, and its line in the usage. The compiled program has one file of the same name for
 * each. `isServer`: the process is long-running and starts with options for its memory. `args`: without it, the command takes
 * no arguments. `hasOwnHelp`: the command explains its options itself.
 */
export const COMMANDS = {
  serve: { source: 'src/main.ts', isServer: true, summary: 'run the service (the default)' },
  demo: { source: 'src/commands/demo.ts', summary: 'send and receive in a temporary folder, without a phone' },
  backup: {
    source: 'src/commands/backup.ts',
    args: 'FOLDER',
    summary: 'copy the SQLite database, also while the service runs',
  },
  restore: { source: 'src/commands/restore.ts', args: 'FILE', summary: 'replace the SQLite database with a backup' },
  'rotate-keys': { source: 'src/commands/rotate-keys.ts', summary: 'encrypt everything under a new master key' },
  'move-to-postgres': {
    source: 'src/commands/move-to-postgres.ts',
    summary: 'move everything from SQLite to PostgreSQL',
  },
  vacuum: { source: 'src/commands/vacuum.ts', summary: 'return the space of erased messages to the disk (SQLite)' },
  doctor: { source: 'src/commands/doctor.ts', summary: 'check settings, disk, clock, database and rights' },
  healthcheck: {
    source: 'src/commands/healthcheck.ts',
    summary: 'exit with 0 if the service here is ready, else with 1',
  },
  listen: {
    source: 'src/commands/listen.ts',
    args: '--forward URL',
    hasOwnHelp: true,
    summary: 'post the events of an instance to a program on this machine',
  },
  'import-sessions': {
    source: 'src/commands/import-sessions.ts',
    args: 'FOLDER|FILE… | --from evolution|waha [NAME…]',
    summary: 'take over numbers that another program has linked',
  },
  'export-session': {
    source: 'src/commands/export-session.ts',
    args: 'INSTANCE FOLDER',
    summary: 'hand a number over to another program',
  },
  simulator: {
    source: 'simulator/src/cli.ts',
    args: '[--port 8080] [--host 127.0.0.1] …',
    summary: 'run the simulated WhatsApp network alone',
  },
}

export const USAGE = `usage: pombal [COMMAND]

${Object.keys(COMMANDS)
  .map(name => `  ${name.padEnd(16)} ${COMMANDS[name].summary}`)
  .join('\n')}

The settings are read from the environment, as README.md describes. pombal --version prints the version, and pombal COMMAND --help
the usage of a command.
`

export function usageOf(name) {
  const { args, summary } = COMMANDS[name]
  const call = args === undefined ? name : `${name} ${args}`
  return `usage: pombal ${call}\n\n  ${summary}. docs/commands.md says more.\n`
}
