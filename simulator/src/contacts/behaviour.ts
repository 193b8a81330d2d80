/** How the phone of a number treats incoming messages. */
export interface Behaviour {
  onWhatsApp: boolean
  /** WhatsApp refuses a message to it and puts this error in the acknowledgement. */
  refusal: string | null
  delivers: boolean
  reads: boolean
  echoes: boolean
}

const ordinary: Behaviour = { onWhatsApp: true, refusal: null, delivers: true, reads: true, echoes: false }

/** Numbers with a special behaviour. Every other number is ordinary. */
const special: Readonly<Record<string, Behaviour>> = {
  '15005550001': { ...ordinary, onWhatsApp: false, refusal: '404' },
  '15005550002': { ...ordinary, reads: false },
  '15005550003': { ...ordinary, delivers: false, reads: false },
  '15005550004': { ...ordinary, refusal: '421' },
  '15005550005': { ...ordinary, echoes: true },
  '15005550006': { ...ordinary, delivers: false },
}

/** The group that no account is a member of. */
export const FOREIGN_GROUP = '120363000000000001@g.us'

export function behaviourOf(number: string): Behaviour {
  return special[number] ?? ordinary
}

export function hasMeaning(number: string): boolean {
  return number in special
}
