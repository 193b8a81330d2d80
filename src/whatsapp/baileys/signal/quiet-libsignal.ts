/**
 * Prefixes of the lines that libsignal 6.0.0 and Baileys write directly to the console (`session_record.js`,
 * `session_cipher.js`, `session_builder.js`, `curve.js`, `queue_job.js`; `Socket/communities.js`). Those of
 * `session_record.js` contain whole session objects, including private keys.
 */
const KNOWN_LINES = [
  'Closing session:',
  'Opening session:',
  'Removing old closed session:',
  'Migrating session to:',
  'Session already closed',
  'Session already open',
  'Session error:',
  'Failed to decrypt message with any known session',
  'Decrypted message with closed session.',
  'Closing open session in favor of incoming prekey bundle',
  'V1 session storage migration error',
  'WARNING: Expected pubkey of length 33',
  'Unhandled bucket type (for naming):',
  'Error parsing group metadata:',
] as const

const METHODS = ['log', 'info', 'warn', 'error'] as const

/**
 * Drops the lines that libsignal and Baileys write to the console. Some of them contain private keys, so this must be called
 * before any other code runs.
 * @returns a function that restores the console
 */
export function silenceSignalConsole(target: Pick<Console, (typeof METHODS)[number]> = console): () => void {
  const before = METHODS.map(method => [method, target[method]] as const)
  for (const [method, write] of before) {
    target[method] = (...line: unknown[]) => {
      const [first] = line
      if (typeof first === 'string' && KNOWN_LINES.some(known => first.startsWith(known))) return
      write.apply(target, line)
    }
  }
  return () => {
    for (const [method, write] of before) target[method] = write
  }
}
