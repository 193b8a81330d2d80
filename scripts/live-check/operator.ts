import type { Interface } from 'node:readline/promises'
import type { PasskeyAssertion, PasskeyRequest } from '../../src/domain/connection/passkey.ts'
import { parseAssertion, programFor } from './passkey-program.ts'
import { drawQr } from './terminal-qr.ts'

/** The person with the phones. */
export interface Operator {
  /** Scans the code with the phone that has the spare number. */
  scan(qr: string): Promise<void>
  /** Gets the answer of the account's passkey on WhatsApp's page. */
  passkey(request: PasskeyRequest): Promise<PasskeyAssertion>
  /** Whether the phone shows this code too. */
  isSameCode(code: string): Promise<boolean>
  /** Opens the chat on the second phone, so that the text in it is read. */
  read(): Promise<void>
  /** How often the text with this mark shows in the chat on the second phone. */
  countShown(mark: string): Promise<number>
  /** Writes something from the second phone. */
  write(when: 'now' | 'while away'): Promise<void>
}

const LINK_SCREEN = 'WhatsApp > Settings > Linked devices > Link a device'

/** Asks a person at a terminal. Questions are cancelled when `signal` is aborted. */
export function createTerminalOperator(
  terminal: Interface,
  say: (text: string) => void,
  phones: { second: string },
  signal: AbortSignal,
): Operator {
  const ask = (question: string) => terminal.question(question, { signal })
  const untilDone = async (what: string) => void (await ask(`\n${what}\n  Press Enter when it is done. `))
  return {
    scan: async qr => {
      say(`\nScan this with the phone that has the spare number: ${LINK_SCREEN}.\n`)
      say(drawQr(qr))
    },
    passkey: async request => {
      say('\nWhatsApp asks for the passkey of the account. Copy this program:\n')
      say(programFor(request))
      say('Open https://web.whatsapp.com in a browser that can use the passkey, press F12 and choose Console.')
      say('Paste the program, press Enter, then "Use the passkey" and "Copy the answer".')
      for (;;) {
        const assertion = parseAssertion(await ask('\nPaste the answer here, and press Enter: '))
        if (assertion) return assertion
        say('  This is not the answer.')
      }
    },
    isSameCode: async code => {
      const shown = `${code.slice(0, 4)}-${code.slice(4)}`
      for (;;) {
        const answer = await ask(`\nDoes the phone show the code ${shown} too (yes or no)? `)
        if (/^\s*(yes|no)\s*$/i.test(answer)) return /yes/i.test(answer)
      }
    },
    read: () => untilDone(`On the second phone (${phones.second}), open the chat with the spare number.`),
    countShown: async mark => {
      for (;;) {
        const answer = await ask(`\nHow many messages with the mark ${mark} show in that chat? `)
        if (/^\s*\d{1,2}\s*$/.test(answer)) return Number(answer)
        say('  A number, please.')
      }
    },
    write: when =>
      untilDone(
        when === 'now'
          ? 'On the second phone, write any word to the spare number.'
          : 'The link is closed now. On the second phone, write one more word to the spare number, and wait for its tick.',
      ),
  }
}
