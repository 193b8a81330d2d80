import type { ILogger } from 'baileys/lib/Utils/logger.js'
import type { Logger } from 'pino'

/** Longer than any of Baileys' own sentences. */
const MAX_SENTENCE = 160

/**
 * What Baileys has to say, as one field of a debug line. Its objects carry keys, message content, JIDs and stanzas,
 * so none of them is passed on; its sentences may quote a JID, so digits go.
 */
export function createLibraryLogger(logger: Logger): ILogger {
  const say = (first: unknown, second?: string) => {
    const sentence = typeof first === 'string' ? first : second
    if (sentence) logger.debug({ sentence: redact(sentence) }, 'whatsapp.library')
  }
  const ignore = () => undefined
  const library: ILogger = {
    // Baileys builds its debug and trace lines only when the level says so.
    level: 'warn',
    child: () => library,
    trace: ignore,
    debug: ignore,
    info: ignore,
    warn: say,
    error: say,
  }
  return library
}

/** @returns the sentence without anything that could be a number, an address or a key */
export function redact(sentence: string): string {
  return sentence
    .slice(0, MAX_SENTENCE)
    .replace(/\S*@\S*/g, '…')
    .replace(/\d{4,}/g, '…')
    .replace(/[A-Za-z0-9+/=]{24,}/g, '…')
}
