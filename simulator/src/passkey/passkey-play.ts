/**
 * How the next ceremonies differ from an ordinary one.
 *
 * - `no_options`: the request comes without options, so the client has to ask for them.
 * - `refused`: the assertion is refused, whether or not it is right.
 * - `silence`: nothing follows the assertion.
 * - `early`: the phone's keys arrive before the answer to the assertion.
 * - `repeated`: the request comes once more before the assertion, with another challenge.
 * - `expires`: the request is valid for a second and a half.
 * - `wrong_code`: somebody between the phone and the client has exchanged the phone's keys, so that their codes differ.
 * - `unfinished`: nothing follows the client's last message.
 */
export const PASSKEY_PLAYS = [
  'no_options',
  'refused',
  'silence',
  'early',
  'repeated',
  'expires',
  'wrong_code',
  'unfinished',
] as const
export type PasskeyPlay = (typeof PASSKEY_PLAYS)[number]
