import { expect, test } from 'vitest'
import { row } from '../../../test/queued-messages.ts'
import { createGroupDirectory } from '../../../test/units/group-directory.ts'
import { EDIT_WINDOW_MS, type MessageExtras } from '../../domain/conversation.ts'
import type { Message } from '../../domain/message.ts'
import type { QueuedMessage, QuotedMessage } from '../../store/messages/messages.ts'
import { decodeContent } from '../baileys/encode-content.ts'
import { Composer } from './compose.ts'
import { Uploads } from './uploads.ts'

const NOW = 10 * EDIT_WINDOW_MS
const TARGET = { messageId: 'msg_target', whatsappId: '3EB0', author: null }
const EDIT: MessageExtras = { command: { kind: 'edit', text: 'right', target: TARGET } }
const QUOTE: MessageExtras = { quote: TARGET }
const SENT: QuotedMessage = {
  state: 'sent',
  chats: ['5511987654321'],
  sentAt: NOW - 1_000,
  type: 'text',
  text: 'wrong',
  content: null,
}
const OLD: QuotedMessage = { ...SENT, sentAt: NOW - EDIT_WINDOW_MS - 1 }
/** The content of a message that may have reached WhatsApp. */
const WRITTEN = Buffer.from('written')
const QUEUED: QuotedMessage = { ...SENT, state: 'queued', sentAt: null }

/**
 * @param notBefore the time for which the referenced message is scheduled
 * @param later the referenced message once the outcomes that are being recorded are stored
 */
function setUp(stored: QuotedMessage | null, notBefore?: number, later = stored) {
  let found = stored
  const unquoted: string[] = []
  const composer = new Composer({
    lease: { instanceId: 'inst_0', owner: 'node', epoch: 1 },
    groups: createGroupDirectory().groups,
    uploads: new Uploads(null),
    store: {
      messages: {
        find: async () => ({ id: TARGET.messageId, notBefore }) as Message,
        findQuoted: async () => found,
        recordUnquoted: async (_, id) => void unquoted.push(id),
      },
    },
    outcomes: {
      drained: async () => {
        found = later
      },
    },
    now: () => NOW,
    signal: new AbortController().signal,
  })
  const address = '5511987654321@s.whatsapp.net'
  const link = {
    self: { id: '5511900000000@s.whatsapp.net' },
    closed: new AbortController().signal,
    queryGroup: async () => {
      throw new Error('There is no group.')
    },
    uploadFile: async () => {
      throw new Error('There is no file.')
    },
  }
  const message = { ...row(0, '5511987654321'), text: 'x' }
  const checkAndCompose = async (queued: QueuedMessage) =>
    (await composer.checkCommand(queued)) ?? composer.compose(queued, address, link)
  const compose = (extras: MessageExtras) => checkAndCompose({ ...message, extras })
  const composeAgain = (extras?: MessageExtras) =>
    checkAndCompose({ ...message, prepared: { address, content: WRITTEN }, ...(extras && { extras }) })
  return { compose, composeAgain, unquoted }
}

const codeOf = (outcome: object | null) => (outcome as { failure?: { code: string } } | null)?.failure?.code

test.each([
  ['sent in time', SENT, undefined, undefined],
  ['too old', OLD, 'edit_window_closed', 'unconfirmed'],
  ['erased', null, 'message_failed', 'unconfirmed'],
  ['failed', { ...SENT, state: 'failed' } as QuotedMessage, 'message_failed', 'unconfirmed'],
])('an edit of a text that is %s', async (_, stored, code, codeAfterWrite) => {
  const { compose, composeAgain } = setUp(stored)
  expect(codeOf(await compose(EDIT))).toBe(code)
  expect(codeOf(await composeAgain(EDIT))).toBe(codeAfterWrite)
})

test('an erased message can be deleted on WhatsApp, and other messages are not checked again', async () => {
  const { compose, composeAgain } = setUp(null)
  const extras: MessageExtras = { command: { kind: 'delete', target: TARGET } }
  expect(await compose(extras)).toMatchObject({ kind: 'encoded' })
  for (const other of [extras, QUOTE, undefined])
    expect(await composeAgain(other)).toEqual({ kind: 'encoded', content: WRITTEN })
})

test.each([
  ['reaction', { kind: 'reaction', emoji: '👍', target: TARGET }],
  ['deletion', { kind: 'delete', target: TARGET }],
] as const)('a %s fails if its message has failed', async (_, command) => {
  const { compose } = setUp({ ...SENT, state: 'failed' })
  expect(codeOf(await compose({ command }))).toBe('message_failed')
})

test('a text waits while the message that it quotes is queued', async () => {
  const { compose, unquoted } = setUp(QUEUED)
  expect(await compose(QUOTE)).toEqual({ kind: 'unanswered', why: 'quoted_queued' })
  expect(unquoted).toEqual([])
})

test('a text quotes its message as an edit or a deletion leaves it that is still being recorded', async () => {
  const edited = setUp(SENT, undefined, { ...SENT, text: 'right' })
  const { content } = (await edited.compose(QUOTE)) as { content: Uint8Array }
  expect(decodeContent(content).extendedTextMessage?.contextInfo?.quotedMessage).toMatchObject({
    conversation: 'right',
  })
  const deleted = setUp(SENT, undefined, null)
  expect(await deleted.compose(QUOTE)).toMatchObject({ kind: 'encoded' })
  expect(deleted.unquoted).toEqual(['msg_0'])
})

test.each([
  ['scheduled', QUEUED, NOW + 1],
  ['erased', null, undefined],
  ['in the chat of the other spelling', { ...SENT, chats: ['551187654321'] } as QuotedMessage, undefined],
])('a text goes out unquoted if the message that it quotes is %s', async (_, stored, notBefore) => {
  const { compose, unquoted } = setUp(stored, notBefore)
  expect(await compose(QUOTE)).toMatchObject({ kind: 'encoded' })
  expect(unquoted).toEqual(['msg_0'])
})

test.each([{ chats: ['551187654321', '5511987654321'] }, { chats: ['990000007654321@lid'] }])(
  'a text keeps its quote of a message in the chat $chats',
  async ({ chats }) => {
    const { compose, unquoted } = setUp({ ...SENT, chats })
    expect(await compose(QUOTE)).toMatchObject({ kind: 'encoded' })
    expect(unquoted).toEqual([])
  },
)
