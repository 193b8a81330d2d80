import { type ParseArgsConfig, parseArgs } from 'node:util'

/** The options of a command. With an unknown or incomplete one, the process ends with its error and the usage. */
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
