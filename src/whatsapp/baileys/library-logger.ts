import type { ILogger } from 'baileys/lib/Utils/logger.js'
import type { Logger } from 'pino'

/** Longer than any log message of Baileys. */
const MAX_SENTENCE = 160

/**
 * Logs the messages of Baileys at debug level. The objects that it logs contain keys, message content, JIDs and stanzas
 * and are dropped. Its messages may quote a JID, so they are redacted.
 */
export function createLibraryLogger(logger: Logger): ILogger {
  const log = (first: unknown, second?: string) => {
    const sentence = typeof first === 'string' ? first : second
    if (sentence) logger.debug({ sentence: redact(sentence) }, 'whatsapp.library')
  }
  const ignore = () => undefined
  const library: ILogger = {
    // At this level Baileys does not build its debug and trace lines.
    level: 'warn',
    child: () => library,
    trace: ignore,
    debug: ignore,
    info: ignore,
    warn: log,
    error: log,
  }
  return library
}

/** Replaces everything that could be a number, an address or a key. */
export function redact(sentence: string): string {
  return sentence
    .slice(0, MAX_SENTENCE)
    .replace(/\S*@\S*/g, '…')
    .replace(/\d{4,}/g, '…')
    .replace(/[A-Za-z0-9+/=]{24,}/g, '…')
}
