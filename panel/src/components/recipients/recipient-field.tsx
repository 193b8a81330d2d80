import { Autocomplete } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { type Addressee, addresseesQuery } from '../../api/queries.ts'
import { useWords } from '../../i18n/i18n.tsx'
import { useDebounced } from '../use-debounced.ts'
import { recipientText } from './recipient.tsx'

const MAX_SEARCH = 64

interface RecipientFieldProps {
  instanceId: string
  value: string
  onChange: (to: string) => void
  /** False if nothing is wrong. */
  error: string | false
  readOnly: boolean
}

/** A number, a group or a LID address. Finds groups and contacts by their names. */
export function RecipientField({ instanceId, value, onChange, error, readOnly }: RecipientFieldProps) {
  const words = useWords()
  const [typed, setTyped] = useState('')
  const [picked, setPicked] = useState<Addressee | null>(null)
  const search = useDebounced(typed.trim().slice(0, MAX_SEARCH))
  const { data } = useQuery({ ...addresseesQuery(instanceId, search), enabled: search !== '' })
  const found = search === '' ? [] : (data ?? [])
  const byId = new Map(found.map(one => [one.id, one]))
  const detail = ({ id, memberCount }: Addressee) =>
    memberCount === null ? recipientText(id, words) : words.inbox.members(memberCount)
  return (
    <Autocomplete
      label={words.send.to}
      description={
        picked?.id === value ? (
          <>
            <bdi>{picked.name}</bdi> ({detail(picked)})
          </>
        ) : (
          words.send.toHint
        )
      }
      value={value}
      data={[...byId.keys()]}
      // The service has already searched, by more fields than the address.
      filter={({ options }) => options}
      renderOption={({ option }) => {
        const one = byId.get(option.value)
        return one ? (
          <span>
            <bdi>{one.name ?? recipientText(one.id, words)}</bdi> <small>{detail(one)}</small>
          </span>
        ) : (
          option.value
        )
      }}
      onChange={to => {
        onChange(to)
        setTyped(byId.has(to) ? '' : to)
      }}
      comboboxProps={{ keepMounted: false }}
      onOptionSubmit={id => setPicked(byId.get(id) ?? null)}
      autoComplete="off"
      error={error}
      readOnly={readOnly}
      data-autofocus
    />
  )
}
