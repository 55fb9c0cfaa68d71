// SPDX-License-Identifier: LGPL-2.1-or-later
#include "overlappingcall.h"

#include <utility>

#include "support.h"

namespace cudaconv::test {

namespace {

OverlappingCall *overlapping_call;
decltype(GObjectClass::dispatch_properties_changed) dispatch_of_the_element;

}  // namespace

OverlappingCall::OverlappingCall(GstElement *element, std::string first, std::string rest)
    : element_(element), first_(std::move(first)), rest_(std::move(rest)) {
  overlapping_call = this;
  dispatch_of_the_element =
      std::exchange(G_OBJECT_GET_CLASS(element)->dispatch_properties_changed, &OverlappingCall::dispatch);
}

OverlappingCall::~OverlappingCall() {
  if (thread_.joinable()) end();
  G_OBJECT_GET_CLASS(element_)->dispatch_properties_changed = dispatch_of_the_element;
}

void OverlappingCall::dispatch(GObject *object, guint count, GParamSpec **specs) {
  if (OverlappingCall *const call = std::exchange(overlapping_call, nullptr)) call->begin();
  dispatch_of_the_element(object, count, specs);
}

void OverlappingCall::begin() {
  thread_ = std::thread([this] {
    g_object_freeze_notify(G_OBJECT(element_));
    set_properties(element_, first_);
    begun_.set_value();
    ending_.get_future().wait();
    set_properties(element_, rest_);
    g_object_thaw_notify(G_OBJECT(element_));
  });
  begun_.get_future().wait();
}

void OverlappingCall::end() {
  ending_.set_value();
  thread_.join();
}

}  // namespace cudaconv::test
