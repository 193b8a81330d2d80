import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createLibraryLogger, redact } from '../library-scope.ts'
import { silenceSignalConsole } from './quiet-libsignal.ts'

test('lines of the Signal library, which contain private keys, do not reach the console; other lines do', () => {
  const printed: unknown[] = []
  const write = (...line: unknown[]) => void printed.push(...line)
  const target = { log: write, info: write, warn: write, error: write }
  const putBack = silenceSignalConsole(target)
  target.info('Closing session:', { privKey: 'secret' })
  target.error('Session error:Error: Bad MAC', 'stack')
  target.info('a line of ours')
  expect(printed).toEqual(['a line of ours'])
  putBack()
  expect(target.info).toBe(write)
})

test('a log line of Baileys keeps only its message, without addresses and keys', () => {
  const lines: string[] = []
  const logger = createLibraryLogger(pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) }))
  const secret = { key: Buffer.from('private'), text: 'hello', jid: '5511987654321@s.whatsapp.net' }
  for (const method of ['trace', 'debug', 'info', 'warn', 'error'] as const) {
    logger[method](secret, 'Invalid LID-PN mapping: 990000001@lid, 5511987654321@s.whatsapp.net')
    logger[method](secret)
    logger.child(secret)[method](secret, 'x')
  }
  const all = lines.join()
  expect(all).toContain('Invalid LID-PN mapping')
  for (const word of ['private', 'hello', '5511987654321', '990000001', 'Buffer']) expect(all).not.toContain(word)
})

test.each([
  ['sent to 5511987654321@s.whatsapp.net', 'sent to …'],
  ['number 5511987654321 refused', 'number … refused'],
  ['key MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8 is bad', 'key … is bad'],
])('%s', (sentence, expected) => {
  expect(redact(sentence)).toBe(expected)
})
