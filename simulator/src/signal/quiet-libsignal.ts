/** The consoles whose libsignal output is already dropped. */
const quieted = new WeakSet<Console>()

const methods = ['log', 'info', 'warn', 'error'] as const

/**
 * Drops the console output of libsignal in this thread, because it prints whole sessions with private keys (libsignal
 * 6.0.0, src/session_record.js). Other output is passed on.
 */
export function quietLibsignal(): void {
  if (quieted.has(console)) return
  quieted.add(console)
  for (const method of methods) {
    const write = console[method]
    console[method] = (...args: unknown[]) => {
      if (!isCalledByLibsignal()) write.apply(console, args)
    }
  }
}

function isCalledByLibsignal(): boolean {
  // The lines: "Error", this function, the wrapper, the caller.
  const caller = new Error().stack?.split('\n')[3] ?? ''
  return /[\\/]libsignal[\\/]src[\\/]/.test(caller)
}
