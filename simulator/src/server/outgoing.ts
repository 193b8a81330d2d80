import type { Account, Client } from '../account.ts'
import { type Address, parseAddress } from '../addresses.ts'
import { bytes, child, children, type Node } from '../wire/nodes.ts'

/** One message as the client sent it. */
export interface Outgoing {
  id: string
  stanza: Node
  copies: Copy[]
  /** The part shared by all members of a group. */
  groupCiphertext: Buffer | null
  /** The sending device as libsignal names it. */
  peer: string
  receivedAt: number
}

interface Copy {
  address: Address
  enc: Node
}

export function readOutgoing(account: Account, client: Client, stanza: Node): Outgoing | null {
  const { id, to, participant } = stanza.attrs
  if (!id) return null
  const copies: Copy[] = []
  for (const part of children(child(stanza, 'participants'), 'to'))
    addCopy(copies, part.attrs['jid'], child(part, 'enc'))
  const direct = child(stanza, 'enc')
  if (direct && direct.attrs['type'] !== 'skmsg') addCopy(copies, participant ?? to, direct)
  const shared = children(stanza, 'enc').find(part => part.attrs['type'] === 'skmsg')
  return {
    id,
    stanza,
    copies,
    groupCiphertext: bytes(shared) ?? null,
    peer: `${account.phone}.${client.device}`,
    receivedAt: Date.now(),
  }
}

function addCopy(copies: Copy[], jid: string | undefined, enc: Node | undefined): void {
  const address = parseAddress(jid)
  if (address && enc) copies.push({ address, enc })
}

export function copyFor(message: Outgoing, number: string, device: number): Copy | undefined {
  return message.copies.find(({ address }) => address.number === number && address.device === device)
}
