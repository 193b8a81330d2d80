import { type ParseArgsConfig, parseArgs } from 'node:util'

/** Reads the options of a command. If one is unknown or incomplete, prints the error and the usage, and exits. */
export function readOptions<const O extends NonNullable<ParseArgsConfig['options']>>(
  usage: string,
  options: O,
  allowPositionals = false,
): ReturnType<typeof parseArgs<{ options: O; allowPositionals: boolean }>> {
  try {
    return parseArgs({ options, allowPositionals })
  } catch (error) {
    console.error(`${(error as Error).message}\n${usage}`)
    process.exit(2)
  }
}
