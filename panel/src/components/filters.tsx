import { TextInput } from '@mantine/core'
import { type ReactNode, useEffect, useState } from 'react'
import classes from './filters.module.css'

const APPLY_AFTER_MS = 350

export function FilterBar({ children }: { children: ReactNode }) {
  return <div className={classes.bar}>{children}</div>
}

interface TextFilterProps {
  label: string
  placeholder: string
  value: string | undefined
  onChange: (value: string | undefined) => void
  /** Only Enter applies it, and empties the field. */
  onEnter?: boolean
}

/** Applies what is typed once the typing pauses. */
export function TextFilter({ label, placeholder, value, onChange, onEnter = false }: TextFilterProps) {
  const [text, setText] = useState(value ?? '')
  // biome-ignore lint/correctness/useExhaustiveDependencies: the text alone starts the wait
  useEffect(() => {
    const trimmed = text.trim()
    if (onEnter || trimmed === (value ?? '')) return
    const timer = setTimeout(() => onChange(trimmed || undefined), APPLY_AFTER_MS)
    return () => clearTimeout(timer)
  }, [text])
  // biome-ignore lint/correctness/useExhaustiveDependencies: a change from outside, as "clear filters", replaces what is typed
  useEffect(() => {
    if ((value ?? '') !== text.trim() && !onEnter) setText(value ?? '')
  }, [value])
  return (
    <TextInput
      label={label}
      placeholder={placeholder}
      value={text}
      onChange={event => setText(event.currentTarget.value)}
      onKeyDown={event => {
        if (event.key !== 'Enter' || !text.trim()) return
        onChange(text.trim())
        if (onEnter) setText('')
      }}
      maxLength={64}
      autoComplete="off"
    />
  )
}
