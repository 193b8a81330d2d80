import { spawn } from 'node:child_process'
import { join } from 'node:path'
import type {
  AccountInfo,
  Call,
  ContactCall,
  ContactMessage,
  ContactProfile,
  GroupChange,
  GroupState,
  Order,
  OrderResult,
  OwnerMessage,
  PhonePresence,
  ReceivedMedia,
  ReceivedMessage,
  SavedContact,
  ScenarioState,
} from '@pombal/simulator'
import { killOnExit } from './kill-on-exit.ts'
import { captureLog, noteBody } from './logs/log-capture.ts'
import { until } from './until.ts'

const PROGRAM = join(import.meta.dirname, '../bin/pombal.js')

/** A message on a simulated phone. */
export interface PhoneMessage extends Pick<ReceivedMessage, 'edited' | 'deleted' | 'reactions' | 'message'> {
  id: string
  from: string
  text: string
  /** The file, after the phone has downloaded it. */
  media?: ReceivedMedia
  /** WhatsApp's ID of the message that it quotes. */
  quoted?: string
  /** The whole message, unless it is a plain text or a file. */
  // biome-ignore lint/suspicious/noExplicitAny: tests compare parts of it
  details?: any
  group?: string
  /** How often this ID arrived. The phone shows it once. */
  copies: number
  /** How often the phone requested it again before it could read it; on an account's own phone, how often its client did. */
  askedFor?: number
}

/** A file as the simulator's control takes it. */
function inBase64(media: ContactMessage['media']) {
  return (
    media && {
      media: { ...media, bytes: undefined, base64: media.bytes && Buffer.from(media.bytes).toString('base64') },
    }
  )
}

export type Network = Awaited<ReturnType<typeof startNetwork>>

/**
 * The simulated WhatsApp in a process of its own, which outlives the service. `WHATSAPP_URL` is its `url`.
 * @param options more of the program's options
 */
export async function startNetwork(options: readonly string[] = []) {
  const child = spawn(process.execPath, [PROGRAM, 'simulator', '--port', '0', ...options], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = new Promise(resolve => child.once('close', resolve))
  killOnExit(child)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', text => {
      output += text
      captureLog(text)
    })
  }
  const url = await until('the simulated network', () => {
    if (child.exitCode !== null) throw new Error(`The simulator ended during its start:\n${output}`)
    return /ws:\/\/\S+/.exec(output)?.[0]
  })
  const origin = `http://${new URL(url).host}`

  async function call<T>(method: string, path: string, body?: string): Promise<T> {
    const response = await fetch(`${origin}/admin${path}`, { method, ...(body !== undefined && { body }) }).catch(
      cause => {
        throw new Error(`${method} ${path} was not answered.`, { cause })
      },
    )
    const answer = await response.json()
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${JSON.stringify(answer)}`)
    return answer as T
  }

  return {
    url,
    /** Its output, which contains its errors. */
    output: () => output,
    /** A simulated phone scans the QR code: the one with this name, or a new one. */
    scanQr: (qr: string, phone?: string) =>
      call<{ phone: string }>('POST', `/mock-phone/scan-qr${phone === undefined ? '' : `?phone=${phone}`}`, qr),
    /** The owner of the phone types the code that the client shows. */
    typePairingCode: (code: string, phone: string) =>
      call<{ phone: string }>('POST', '/mock-phone/pairing-code', JSON.stringify({ code, phone })),
    writeAs: (message: ContactMessage) => {
      const { media, ...words } = message
      noteBody(words)
      return call<{ id: string }>('POST', '/messages', JSON.stringify({ ...words, ...inBase64(media) }))
    },
    /** A contact calls the number. */
    callAs: (ringing: ContactCall) => call<{ id: string }>('POST', '/calls', JSON.stringify(ringing)),
    /** The calls from and to this number. */
    calls: async (number: string) => (await call<{ calls: Call[] }>('GET', `/phones/${number}/calls`)).calls,
    /** The owner of an account writes on the phone. */
    writeAsOwner: ({ phone, media, ...words }: OwnerMessage) => {
      noteBody(words)
      const body = JSON.stringify({ ...words, ...inBase64(media) })
      return call<{ id: string }>('POST', `/phones/${phone}/messages`, body)
    },
    /** Who has typed last in each chat, as the phone of a number shows it. */
    typing: async (number: string) => (await call<PhonePresence>('GET', `/phones/${number}/presence`)).typing,
    saveContacts: (phone: string, contacts: readonly SavedContact[]) =>
      call('POST', `/phones/${phone}/contacts`, JSON.stringify({ contacts })),
    /** Makes numbers members of a group. Every account among them sees the new members. */
    joinGroup: (group: string, members: readonly string[]) =>
      call('POST', `/groups/${group}/members`, JSON.stringify({ members })),
    /** A contact creates a group. One of the members is an account. @returns the group's ID */
    createGroup: async (group: { by: string; subject: string; members: readonly string[] }) =>
      (await call<{ group: string }>('POST', '/groups', JSON.stringify(group))).group,
    /** People change a group. */
    changeGroup: (group: string, change: GroupChange) =>
      call<GroupState>('POST', `/groups/${group}`, JSON.stringify(change)),
    /** A contact changes its text or username. */
    setProfile: (profile: Omit<ContactProfile, 'picture'>) => call('POST', '/profile', JSON.stringify(profile)),
    /** A phone with this number, linked to nothing. */
    openAccount: (phone: string) => call<{ phone: string }>('POST', `/accounts/${phone}`),
    accounts: async () => (await call<{ accounts: AccountInfo[] }>('GET', '/accounts')).accounts,
    inbox: async (number: string, whole = false) =>
      (await call<{ messages: PhoneMessage[] }>('GET', `/phones/${number}/messages?whole=${whole}`)).messages,
    misbehave: (order: Order) => call<OrderResult>('POST', '/scenario', JSON.stringify(order)),
    scenario: () => call<ScenarioState>('GET', '/scenario'),

    /** From now on the network reads and answers nothing. Data that is written to it stays in the socket buffers. */
    pause(): void {
      child.kill('SIGSTOP')
    },

    resume(): void {
      child.kill('SIGCONT')
    },

    async close(): Promise<void> {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      await exited
    },
  }
}
