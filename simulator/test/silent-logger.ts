import type { UserFacingSocketConfig } from 'baileys'

type Logger = NonNullable<UserFacingSocketConfig['logger']>

/** Prints Baileys' warnings when DEBUG_BAILEYS is set. */
export function createSilentLogger(): Logger {
  const nothing = () => undefined
  const print = process.env['DEBUG_BAILEYS'] ? (...args: unknown[]) => console.dir(args, { depth: 6 }) : nothing
  const logger: Logger = {
    level: 'warn',
    child: () => logger,
    trace: nothing,
    debug: nothing,
    info: nothing,
    warn: print,
    error: print,
  }
  return logger
}
