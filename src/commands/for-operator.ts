import { BadSettings } from '../config.ts'
import type { Environment } from '../environment.ts'
import { StoreUnavailable, StoreUnusable } from '../store/errors.ts'

/** Whether the message of the error helps the operator. Errors of the operating system name the file. */
export function isForOperator(error: unknown): error is Error {
  if (error instanceof BadSettings || error instanceof StoreUnusable || error instanceof StoreUnavailable) return true
  return error instanceof Error && 'syscall' in error
}

/** A setting of one command, which may be in a file. @throws BadSettings */
export function commandSetting(environment: Environment, name: string): string | null {
  try {
    return environment.get(name)
  } catch (error) {
    throw new BadSettings([(error as Error).message])
  }
}

/** A path that begins with "-" is a misspelled option. @throws BadSettings with the usage, unless exactly one path is given */
export function onePath(usage: string): string {
  const [path, ...more] = process.argv.slice(2)
  if (path === undefined || path === '' || path.startsWith('-') || more.length > 0) throw new BadSettings([usage])
  return path
}
