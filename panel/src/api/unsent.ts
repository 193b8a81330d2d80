import { useMutation, useQuery } from '@tanstack/react-query'
import { useCallback, useSyncExternalStore } from 'react'
import { randomId } from '../text/random-id.ts'
import { ApiError, callData } from './client.ts'
import { accountOf } from './other-tabs.ts'
import { sessionQuery } from './queries.ts'
import type { ChatLine } from './types.ts'

/** The file of a message that is being written. */
export type Attachment =
  | { state: 'none'; error: unknown /** The form was left during the upload. */; isInterrupted?: boolean }
  | { state: 'uploading'; name: string; percent: number }
  | { state: 'stored'; name: string; file: { id: string /** Undefined if it is not known. */; size?: number } }

/** A message that is being written or sent. An absent field was not changed by the person. */
export interface Unsent {
  to?: string
  text?: string
  /** The message that this one answers. */
  quote?: ChatLine | null
  attachment?: Attachment
  /** The address of the file. Null if there is no field for one. */
  url?: string | null
  /** The last call has no answer yet. */
  isPending?: boolean
  /** Why the last call failed. */
  error?: unknown
  /** The ID of the message, once the service has accepted it. */
  sentId?: string
}

const NOTHING: Unsent = {}
/**
 * The unsent messages, by the place where each is written: an account, an instance and a form. They outlive the page that
 * shows them: only a reload or a sign-out erases them.
 */
const messages = new Map<string, Unsent>()
const keys = new Map<string, { content: string; key: string }>()
/** For each place whose message was moved: the new place. A call that began at the old place writes its outcome to the new one. */
const moved = new Map<string, string>()
const listeners = new Set<() => void>()

function placeNow(place: string): string {
  return moved.get(place) ?? place
}

function set(place: string, message: Unsent): void {
  messages.set(placeNow(place), message)
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Erases everything that was not sent, of all accounts. */
export function forgetUnsent(): void {
  messages.clear()
  keys.clear()
  moved.clear()
  for (const listener of listeners) listener()
}

/** Names the places of messages: by account, instance and form. Another account never gets the text of this one. */
export function usePlaces(instanceId: string): (form: string) => string {
  const { data: session } = useQuery(sessionQuery)
  const account = session && accountOf(session)
  return useCallback(form => JSON.stringify([account, instanceId, form]), [account, instanceId])
}

export function useUnsent(place: string): Unsent {
  return useSyncExternalStore(subscribe, () => messages.get(placeNow(place)) ?? NOTHING)
}

/** The ID of the message that was sent last from this place. Unlike `useUnsent`, it does not render at every keystroke. */
export function useSentId(place: string): string | undefined {
  return useSyncExternalStore(subscribe, () => messages.get(placeNow(place))?.sentId)
}

/** True while the message of this place has no answer yet. Unlike `useUnsent`, it does not render at every keystroke. */
export function useIsSending(place: string): boolean {
  return useSyncExternalStore(subscribe, () => messages.get(placeNow(place))?.isPending ?? false)
}

export function changeUnsent(place: string, changed: Unsent): void {
  set(place, { ...messages.get(placeNow(place)), ...changed })
}

export function dropUnsent(place: string): void {
  messages.delete(placeNow(place))
  for (const listener of listeners) listener()
}

/**
 * Drops the message of a place once its text was sent.
 * @returns false if another text was typed meanwhile, which stays
 */
export function dropSent(place: string, sentText: string): boolean {
  const text = messages.get(placeNow(place))?.text
  if (text !== undefined && text !== sentText) return false
  dropUnsent(place)
  return true
}

/** Moves the message of a place to another place, unless that already has an unsent text. */
export function moveUnsent(from: string, to: string): void {
  if (from === to || moved.has(from) || messages.get(to)?.text) return
  moved.set(from, to)
  const [message, key] = [messages.get(from), keys.get(from)]
  messages.delete(from)
  keys.delete(from)
  if (key) keys.set(to, key)
  if (message) set(to, message)
}

/** The content of a message that a person writes in the panel. */
interface Content {
  to: string
  text?: string
  media?: string | { url: string } | undefined
  quote?: string | undefined
}

/**
 * Sends a message that a person wrote. Until there is an answer, the same content has the same idempotency key, so a
 * repeated click or a lost answer sends nothing twice.
 * @returns the message, and the key
 */
export async function sendOnce(instanceId: string, place: string, content: Content, usedKey?: string) {
  const text = JSON.stringify(content)
  const known = keys.get(placeNow(place))
  const key = usedKey ?? (known?.content === text ? known.key : randomId())
  keys.set(placeNow(place), { content: text, key })
  const body = { ...content, idempotencyKey: key }
  const { id } = await callData<{ id: string }>(`/instances/${instanceId}/messages`, { method: 'POST', body })
  keys.delete(placeNow(place))
  return { id, key }
}

/**
 * Sends the message of a place. The answer is kept there, even if the form is gone by then.
 * @returns a function that does nothing while an earlier call of this place runs
 */
export function useSend(instanceId: string, place: string): (content: Content) => void {
  const { mutate } = useMutation({
    mutationFn: (content: Content) => sendOnce(instanceId, place, content),
    onMutate: () => changeUnsent(place, { isPending: true, error: null }),
    onSuccess: ({ id }) => set(place, { sentId: id }),
    onError: error => {
      // The person only has to sign in again, which the panel shows elsewhere.
      const hasEnded = error instanceof ApiError && error.code === 'invalid_admin_key'
      changeUnsent(place, { isPending: false, error: hasEnded ? null : error })
    },
  })
  return content => {
    if (!messages.get(placeNow(place))?.isPending) mutate(content)
  }
}
